# The programs on a simulated GPU, in builds with one: part of the simulated suite.
add_dependencies(simulated_suite cifar_train train_bench)

add_test(NAME "train_bench: a step on the GPU" COMMAND train_bench --device cuda --model mnist_cnn --layers 1
  --in-channels 1 --image-size 8 --batch-size 4 --steps 1 --warmup 0)
set_tests_properties("train_bench: a step on the GPU" PROPERTIES LABELS simulated
  PASS_REGULAR_EXPRESSION "\"device\":\"cuda:0\"")

# simulated_case(NAME text, and what app_case takes)
function(simulated_case)
  cmake_parse_arguments(CASE "" "NAME" "" ${ARGN})
  app_case(NAME "${CASE_NAME}" ${CASE_UNPARSED_ARGUMENTS})
  set_property(TEST "cifar_train: ${CASE_NAME}" APPEND PROPERTY LABELS simulated)
endfunction()

set(tiny_run --device cuda --dataset synthetic --model mnist_cnn --layers 1 --limit-train 8 --limit-test 4
  --global-batch-size 4 --epochs 1 --augment crop,flip)
simulated_case(NAME "trains on a GPU" OUT "on cuda:0, backend self" "test accuracy" ARGS ${tiny_run})
simulated_case(NAME "trains on two GPUs" RANKS 2 ENVIRONMENT TANDEM_SIMULATOR_DEVICES=2
  OUT "backend ring" "test accuracy" ARGS ${tiny_run} --check-replicas)
simulated_case(NAME "trains in half precision on a GPU" OUT "numbers  fp16, f32 master weights" "test accuracy"
  ARGS ${tiny_run} --precision fp16)
simulated_case(NAME "GPU without memory" EXIT 2 ENVIRONMENT TANDEM_SIMULATOR_MEMORY=65536
  ERR "out of memory on cuda:0" "in use:" "try a smaller batch size" ARGS ${tiny_run})
simulated_case(NAME "GPU that is not there" EXIT 2 ERR "--device cuda:1" "cuda:0 (Tandem simulated GPU 0)"
  ARGS --device cuda:1)
simulated_case(NAME "auto leaves simulated GPUs alone" OUT "on cpu" ARGS --device auto --dataset synthetic --epochs 0
  --limit-train 8 --limit-test 4)
