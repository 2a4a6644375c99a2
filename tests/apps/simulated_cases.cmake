# The programs on a simulated GPU, in builds with one: part of the simulated suite.
add_dependencies(simulated_suite cifar_train conv_bench train_bench)

add_test(NAME "train_bench: a step on the GPU" COMMAND train_bench --device cuda --model mnist_cnn --layers 1
  --in-channels 1 --image-size 8 --batch-size 4 --steps 1 --warmup 0)
set_tests_properties("train_bench: a step on the GPU" PROPERTIES LABELS simulated
  PASS_REGULAR_EXPRESSION "\"device\":\"cuda:0\"")

add_test(NAME "train_bench: a step is a launch"
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_graph_bench.py $<TARGET_FILE:train_bench>)
set_tests_properties("train_bench: a step is a launch" PROPERTIES LABELS simulated)

# simulated_case(NAME text, and what app_case takes)
function(simulated_case)
  cmake_parse_arguments(CASE "" "NAME" "" ${ARGN})
  app_case(NAME "${CASE_NAME}" ${CASE_UNPARSED_ARGUMENTS})
  set_property(TEST "cifar_train: ${CASE_NAME}" APPEND PROPERTY LABELS simulated)
endfunction()

set(tiny_network --device cuda --dataset synthetic --model mnist_cnn --layers 1 --limit-test 4 --global-batch-size 4
  --augment crop,flip)
set(tiny_run ${tiny_network} --limit-train 8 --epochs 1)
simulated_case(NAME "trains on a GPU" OUT "on cuda:0, backend self" "test accuracy" ARGS ${tiny_run})
simulated_case(NAME "trains on two GPUs" RANKS 2 ENVIRONMENT TANDEM_SIMULATOR_DEVICES=2
  OUT "backend native" "test accuracy" ARGS ${tiny_run} --check-replicas)
simulated_case(NAME "trains in half precision on a GPU" OUT "numbers  fp16, f32 master weights" "test accuracy"
  ARGS ${tiny_run} --precision fp16)
simulated_case(NAME "trains in TF32 on a GPU" OUT "numbers  f32, multiplied as tf32 in convolutions" "test accuracy"
  ARGS ${tiny_run} --precision tf32)
simulated_case(NAME "GPU without memory" EXIT 2 ENVIRONMENT TANDEM_SIMULATOR_MEMORY=65536
  ERR "out of memory on cuda:0" "in use:" "try a smaller batch size" ARGS ${tiny_run})
# 1.2 MiB of images, where the network and what the runtime takes leave less.
set(many_images ${tiny_network} --limit-train 400 --epochs 1)
simulated_case(NAME "images beyond the memory of a GPU" EXIT 2 ENVIRONMENT TANDEM_SIMULATOR_MEMORY=1048576
  ERR "--resident-data on: 1.2 MiB of images do not fit into the " " that are free on cuda:0; choose auto or off"
  ARGS ${many_images} --resident-data on)
# 2.3 MiB of images are more than a quarter of the whole 8 MiB, whatever the network and the runtime take.
simulated_case(NAME "images of more than a quarter of the free memory" ENVIRONMENT TANDEM_SIMULATOR_MEMORY=8388608
  OUT "more than a quarter of what is free on cuda:0: batches are made on the CPU" "test accuracy"
  ARGS ${tiny_network} --limit-train 800 --steps 2)
simulated_case(NAME "GPU that is not there" EXIT 2 ERR "--device cuda:1" "cuda:0 (Tandem simulated GPU 0)"
  ARGS --device cuda:1)
simulated_case(NAME "auto leaves simulated GPUs alone" OUT "on cpu" ARGS --device auto --dataset synthetic --epochs 0
  --limit-train 8 --limit-test 4)

app_case(PROGRAM conv_bench NAME "verifies and times on a GPU" OUT "cuda:0 (Tandem simulated GPU 0)" "ours" "reference"
  ARGS --device cuda --shape 2,3,6,6,8,3,3,1,1 --precision fp32,fp16 --impl ours,fused,reference --groups 1 --launches 1
  --warmup 0 --cache hot)
app_case(PROGRAM conv_bench NAME "verifies and times f32 on tensor cores" OUT "  tf32 " "  3xtf32 "
  ERR "tf32: only f32 is rounded for tensor cores, not f16"
  ARGS --device cuda --shape 1,8,6,6,8,3,3,1,1 --precision fp32,fp16 --groups 1 --launches 1 --warmup 0 --cache hot
  --impl tf32,3xtf32)
app_case(PROGRAM conv_bench NAME "verifies and times the ladder"
  OUT "ladder-naive" "ladder-shared-tile" "ladder-register-tile" "ladder-tensor-cores" "ladder-pipelined" "ladder-halo"
  ARGS --device cuda --shape 1,8,6,6,8,3,3,1,1 --precision fp16 --groups 1 --launches 1 --warmup 0 --cache hot
  --impl ladder-naive,ladder-shared-tile,ladder-register-tile,ladder-tensor-cores,ladder-pipelined,ladder-halo)
app_case(PROGRAM conv_bench NAME "verifies and times each family"
  OUT "family-naive" "family-tile" "family-implicit_gemm" "family-stationary"
  ARGS --device cuda --shape 1,8,6,6,8,3,3,1,1 --precision fp16 --groups 1 --launches 1 --warmup 0 --cache hot
  --impl family-naive,family-tile,family-implicit_gemm,family-stationary)
app_case(PROGRAM conv_bench NAME "cuDNN on a simulated GPU" EXIT 2 ERR "--impl cudnn: cuDNN does not run on simulated GPUs"
  ARGS --device cuda --shape 2,3,6,6,8,3,3,1,1 --impl cudnn)
set_property(TEST "conv_bench: verifies and times on a GPU" "conv_bench: verifies and times the ladder"
  "conv_bench: verifies and times each family" "conv_bench: verifies and times f32 on tensor cores"
  "conv_bench: cuDNN on a simulated GPU"
  APPEND PROPERTY LABELS simulated)
if(TANDEM_SIMULATOR_MODE STREQUAL "race")
  app_case(PROGRAM conv_bench NAME "counts on a GPU" OUT "launches" "fwd   reference" "bwd   reference"
    ARGS --device cuda --count --shape 1,8,4,4,8,1,1,1,0 --impl ours,reference --passes fwd,bwd)
  app_case(PROGRAM conv_bench NAME "counts nothing on the CPU" EXIT 2 ERR "--count: only simulated GPUs" ARGS --count
    --shape 1,8,4,4,8,1,1,1,0)
  app_case(PROGRAM train_bench NAME "counts a step on a GPU" OUT "launches" "few_channels_forward<Half" "adam" "in all"
    ARGS --device cuda --precision fp16 --model mnist_cnn --layers 2 --in-channels 1 --image-size 8 --batch-size 4
    --warmup 0 --count)
  app_case(PROGRAM train_bench NAME "counts nothing on the CPU" EXIT 2 ERR "--count: only simulated GPUs"
    ARGS --count --model mnist_cnn --layers 1 --in-channels 1 --image-size 8 --batch-size 4 --warmup 0)
  set_property(TEST "conv_bench: counts on a GPU" "conv_bench: counts nothing on the CPU"
    "train_bench: counts a step on a GPU" "train_bench: counts nothing on the CPU" APPEND PROPERTY LABELS simulated)
endif()

# The kernel whose turns docs/concepts/simulator.md shows, with its barrier and without.
if(TANDEM_SIMULATOR_MODE STREQUAL "race")
  tandem_simulated_test(block_sum_turns ${PROJECT_SOURCE_DIR}/apps/pictures/block_sum.cu)
  add_dependencies(simulated_suite block_sum_turns)
  add_test(NAME "docs: turns of the simulator are those of the pictures"
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_turns.py $<TARGET_FILE:block_sum_turns>)
  foreach(name "docs: turns of the simulator are those of the pictures" "block_sum_turns (forward)" "block_sum_turns (reverse)"
      "block_sum_turns (random:1)" "block_sum_turns (random:2)" "block_sum_turns (random:3)")
    set_tests_properties(${name} PROPERTIES LABELS simulated)
  endforeach()
endif()
