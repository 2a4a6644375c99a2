# What train_bench, device_query and allreduce_bench accept and refuse.
# train_refuses(NAME text ERR text... ARGS arg...): exit code 2 and one line that has these texts.
function(train_refuses)
  app_case(PROGRAM train_bench EXIT 2 ${ARGN})
endfunction()

set(tiny_net --model mnist_cnn --layers 1 --in-channels 1 --image-size 8 --batch-size 4 --steps 1 --warmup 0)
app_case(PROGRAM train_bench NAME "help" OUT "--batch-size" "--serve" ARGS --help)
app_case(PROGRAM train_bench NAME "a step" OUT "\"precision\":\"fp16\"" ARGS ${tiny_net} --precision fp16)
app_case(PROGRAM train_bench NAME "last value counts" OUT "\"batch_size\":2," ARGS ${tiny_net} --batch-size 2)
train_refuses(NAME "unknown option" ERR "unknown option --modle: did you mean --model?" ARGS --modle mnist_cnn)
train_refuses(NAME "stray word" ERR "unexpected argument 'mnist_cnn'" ARGS mnist_cnn)
train_refuses(NAME "missing value" ERR "--steps needs a value" ARGS --steps)
train_refuses(NAME "unknown model" ERR "unknown model 'vgg': did you mean vgg_lite?" ARGS --model vgg)
train_refuses(NAME "precision by the name of a dtype" ERR "unknown precision 'f16': did you mean fp16?"
  ARGS ${tiny_net} --precision f16)
train_refuses(NAME "batch 0" ERR "--batch-size: 0 is not between 1 and 2147483647" ARGS --batch-size 0)
train_refuses(NAME "too many threads" ERR "--threads: 5000 is not between 0 and 4096" ARGS --threads 5000)
train_refuses(NAME "negative lr" ERR "--lr: -1 must be at least 0, and finite" ARGS --lr -1)
train_refuses(NAME "lr is text" ERR "--lr: 'fast' is not a number" ARGS --lr fast)
train_refuses(NAME "steps without end" ERR "--steps: 99999999999999999999 is too large" ARGS --steps 99999999999999999999)
train_refuses(NAME "two things to do" ERR "--profile and --serve exclude each other: give one" ARGS --profile --serve)
train_refuses(NAME "a graph on the CPU" ERR "--cuda-graph on needs a GPU, and this run is on the CPU: choose auto or off"
  ARGS ${tiny_net} --cuda-graph on)
app_case(PROGRAM train_bench NAME "a graph on the CPU, or none" OUT "\"graph_launches\":0," ERR "CUDA graph: off: the model is on the CPU"
  ARGS ${tiny_net} --cuda-graph auto)
train_refuses(NAME "a graph of another name" ERR "cuda graph 'always': choose auto, on or off" ARGS ${tiny_net} --cuda-graph always)
train_refuses(NAME "a profile of launches" ERR "--profile tells what the host starts in a step, and with --cuda-graph that is one launch"
  ARGS ${tiny_net} --cuda-graph auto --profile)
train_refuses(NAME "weights of another model" ERR "--load-weights app_files/named.safetensors: holds weights of the model vgg_lite"
  ARGS ${tiny_net} --load-weights app_files/named.safetensors)
train_refuses(NAME "batch missing" ERR "--batch app_files/none.safetensors: cannot open"
  ARGS ${tiny_net} --batch app_files/none.safetensors)
train_refuses(NAME "batch without images" ERR "--batch app_files/named.safetensors: no tensor 'images'"
  ARGS ${tiny_net} --batch app_files/named.safetensors)
train_refuses(NAME "weights missing" ERR "--load-weights app_files/none.safetensors: cannot open"
  ARGS ${tiny_net} --load-weights app_files/none.safetensors)

app_case(PROGRAM device_query NAME "lists devices" OUT "cpu " "--device auto: ")
app_case(PROGRAM device_query NAME "help" OUT "Lists the devices" ARGS --help)
app_case(PROGRAM device_query NAME "unknown option" EXIT 2 ERR "unknown option --foo: --help lists all options" ARGS --foo)
app_case(PROGRAM device_query NAME "near option" EXIT 2 ERR "unknown option --hepl: did you mean --help?" ARGS --hepl)
app_case(PROGRAM device_query NAME "option of another program" EXIT 2 ERR "unknown option --dtype: --help lists all options"
  ARGS --dtype f16)
app_case(PROGRAM device_query NAME "stray word" EXIT 2 ERR "unexpected argument 'cuda'" ARGS cuda)

# allreduce_bench: on one rank all but the backends' own work.
app_case(PROGRAM allreduce_bench NAME "help" OUT "--max-bytes" ARGS --help)
app_case(PROGRAM allreduce_bench NAME "one rank" OUT "all_reduce max bf16, 1 ranks" "self"
  ARGS --backends self --max-bytes 64 --rounds 1 --dtype bf16 --op max)
app_case(PROGRAM allreduce_bench NAME "unknown backend" EXIT 2 ERR "--backends: unknown backend 'natve': did you mean native?"
  ARGS --backends mpi,natve)
app_case(PROGRAM allreduce_bench NAME "connectivity of one rank" EXIT 2 ERR "--connectivity: there is one rank"
  ARGS --connectivity)
app_case(PROGRAM allreduce_bench NAME "connectivity of backends" EXIT 2 ERR "--backends: is not of --connectivity"
  ARGS --connectivity --backends mpi)
app_case(PROGRAM allreduce_bench NAME "unknown operation" EXIT 2 ERR "--op: unknown op 'mean' (choices: sum, product, average, min, max)"
  ARGS --op mean)
app_case(PROGRAM allreduce_bench NAME "unknown algorithm" EXIT 2 ERR "--algorithms: unknown algorithm 'rang': did you mean ring?"
  ARGS --algorithms rang)
app_case(PROGRAM allreduce_bench NAME "sizes the wrong way round" EXIT 2 ERR "--min-bytes 64 is more than --max-bytes 8"
  ARGS --backends self --min-bytes 64 --max-bytes 8)
app_case(PROGRAM allreduce_bench NAME "unknown collective" EXIT 2 ERR "--collective: unknown collective 'allgather': did you mean all_gather?"
  ARGS --collective allgather)
app_case(PROGRAM allreduce_bench NAME "a message on one rank" EXIT 2
  ERR "--collective: send_receive needs two ranks or more: a message goes to another rank" ARGS --collective send_receive)
app_case(PROGRAM allreduce_bench NAME "ranks that are not to see each other's tensors" RANKS 2 OUT "all_reduce sum f32, 2 ranks"
  ERR "note: native copies tensors through a window: TANDEM_SINGLE_COPY=off" ENVIRONMENT TANDEM_SINGLE_COPY=off
  ARGS --backends native --min-bytes 65536 --max-bytes 65536 --rounds 1)
# On a simulated network: 8 hosts of 2 ranks.
app_case(PROGRAM allreduce_bench NAME "a simulated network" OUT "all_reduce sum f32, 16 ranks on a simulated network"
  "alpha=50us beta=1.25GB local-alpha=2us local-beta=4GB hosts=8x2" "two-level" "halving-doubling" " 404.9 "
  ARGS --simulate "alpha=50us beta=10Gbit hosts=8x2" --min-bytes 1024 --max-bytes 16384 --factor 16)
app_case(PROGRAM allreduce_bench NAME "a simulated network in real time" RANKS 2
  OUT "all_reduce sum f32, 2 ranks on a simulated network, in real time: median of 3 rounds" "hosts=2x1" "by-cost" "the median error of"
  ARGS --simulate "alpha=2ms beta=1Gbit" --rounds 3 --min-bytes 65536 --max-bytes 65536 --algorithms ring,recursive-doubling,by-cost)
app_case(PROGRAM allreduce_bench NAME "a simulated network in real time of other ranks" RANKS 2 EXIT 2
  ERR "--simulate: network: hosts=4x1 are 4 ranks, and here are 2" ARGS --simulate "hosts=4")
app_case(PROGRAM allreduce_bench NAME "a simulated network in JSON" OUT "\"seconds\":0.00050025" "\"network\":\"alpha=50us"
  ARGS --simulate "alpha=50us beta=10GB hosts=6" --min-bytes 1536 --max-bytes 1536 --algorithms ring --json)
app_case(PROGRAM allreduce_bench NAME "a simulated network whose link is lost" EXIT 2
  ERR "nothing is on its way any more: rank 2 waits for" "bytes from rank 1, which were lost"
  ARGS --simulate "hosts=4 lose=1-2" --algorithms ring)
app_case(PROGRAM allreduce_bench NAME "a simulated network that is none" EXIT 2
  ERR "--simulate: network: alpha=50 is no time" ARGS --simulate alpha=50)
app_case(PROGRAM allreduce_bench NAME "a simulated network without ranks" EXIT 2
  ERR "--simulate: needs two ranks or more" ARGS --simulate alpha=50us)
app_case(PROGRAM allreduce_bench NAME "a simulated network and rounds" EXIT 2
  ERR "--rounds: is of real ranks" ARGS --simulate hosts=4 --rounds 3)
app_case(PROGRAM allreduce_bench NAME "a simulated network and shared memory" EXIT 2
  ERR "--simulate: needs --algorithms of messages, such as ring,direct,by-cost"
  ARGS --simulate hosts=4 --algorithms shared-memory)
app_case(PROGRAM allreduce_bench NAME "a simulated network and another collective" EXIT 2
  ERR "--simulate: is of all_reduce alone" ARGS --simulate hosts=4 --collective all)
app_case(PROGRAM allreduce_bench NAME "a simulated network of thousands of ranks" OUT "2048 ranks" "recursive-doubling"
  ARGS --simulate hosts=2048 --max-bytes 4 --algorithms recursive-doubling)
app_case(PROGRAM allreduce_bench NAME "a simulated network and halves" EXIT 2
  ERR "--dtype bf16: --simulate without mpirun has no halves" ARGS --simulate hosts=4 --dtype bf16)
app_case(PROGRAM allreduce_bench NAME "a simulated network and too many bytes" EXIT 2
  ERR "--max-bytes 9000000000: 4 simulated ranks have at most 2147483648 bytes each"
  ARGS --simulate hosts=4 --max-bytes 9000000000)
app_case(PROGRAM allreduce_bench NAME "one file for two things" EXIT 2 ERR "--csv and --svg are both app_files/both: name two files"
  ARGS --csv app_files/both --svg app_files/both)
app_case(PROGRAM allreduce_bench NAME "one file by two names" EXIT 2 ERR "--csv and --svg are both app_files/both: name two files"
  ARGS --csv app_files/both --svg ./app_files/../app_files/both)
app_case(PROGRAM allreduce_bench NAME "a file in no folder" EXIT 2
  ERR "app_files/none/rows.csv: cannot write: there is no directory app_files/none; make it, or name another"
  ARGS --csv app_files/none/rows.csv)
app_case(PROGRAM allreduce_bench NAME "a file without a name" EXIT 2 ERR "--svg" ARGS --svg "")
app_case(PROGRAM allreduce_bench NAME "all collectives on one rank" COLUMNS 80 OUT "all_gather f32, 1 ranks" "barrier, 1 ranks"
  ARGS --backends self --collective all --max-bytes 64 --rounds 1)
app_case(PROGRAM allreduce_bench NAME "an average of whole numbers" EXIT 2 ERR "--op average: needs a floating --dtype, not i32"
  ARGS --collective all_gather,reduce --op average --dtype i32)
app_case(PROGRAM allreduce_bench NAME "no average of whole numbers" OUT "all_gather i32, 1 ranks"
  ARGS --backends self --collective all_gather --op average --dtype i32 --max-bytes 64 --rounds 1)
# Ranks that are threads.
app_case(PROGRAM allreduce_bench NAME "ranks in one process" OUT "all_reduce sum f32, 3 ranks" "threads, shared" "of the" "all_to_all_rows f32, 3 ranks"
  "barrier, 3 ranks" ARGS --replicas 3 --collective all --roofline --max-bytes 300000 --factor 250 --rounds 1)
app_case(PROGRAM allreduce_bench NAME "ranks in one process, in JSON" OUT "\"ranks\":2,\"backend\":\"threads\",\"shared\":true" "\"wrong\":0"
  ARGS --replicas 2 --backends threads --json --max-bytes 64 --rounds 1 --dtype bf16 --op average)
app_case(PROGRAM allreduce_bench NAME "threads without a number" EXIT 2
  ERR "--backends threads: joins ranks that are threads of one process; start several by --replicas N" ARGS --backends threads)
app_case(PROGRAM allreduce_bench NAME "ranks in one process by another backend" EXIT 2
  ERR "--replicas 2: ranks in one process have backend threads, not mpi,native; leave --backends out"
  ARGS --replicas 2 --backends mpi,native)
app_case(PROGRAM allreduce_bench NAME "ranks in one process by an algorithm" EXIT 2
  ERR "--algorithms: is of ranks that are processes; leave it out, or leave out --replicas" ARGS --replicas 2 --algorithms ring)
app_case(PROGRAM allreduce_bench NAME "no ranks in one process" EXIT 2 ERR "--replicas: 0 is not between 1 and 128" ARGS --replicas 0)
app_case(PROGRAM allreduce_bench NAME "too many ranks in one process" EXIT 2 ERR "--replicas: 129 is not between 1 and 128"
  ARGS --replicas 129)
if(TANDEM_HAS_MPI)
  app_case(PROGRAM allreduce_bench NAME "ranks in one process of two" RANKS 2 EXIT 2
    ERR "--replicas 2: 2 processes were started, which are the ranks already; choose one of both" ARGS --replicas 2)
  set(bench_backends mpi native)
  if(TANDEM_HAS_GLOO)
    list(APPEND bench_backends gloo)
  endif()
  foreach(ranks 1 2 3)
    add_test(NAME "allreduce_bench: every collective, ranks ${ranks}"
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_allreduce_bench.py $<TARGET_FILE:allreduce_bench> ${ranks}
        ${bench_backends})
    set_tests_properties("allreduce_bench: every collective, ranks ${ranks}" PROPERTIES
      ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 300)
  endforeach()
  # Threads of one process run the same collectives in the unit tests.
  set_property(TEST "allreduce_bench: every collective, ranks 1" "allreduce_bench: every collective, ranks 3" APPEND PROPERTY LABELS no-asan)
  app_case(PROGRAM allreduce_bench NAME "a picture that cannot be" RANKS 2 EXIT 2 ERR "error: app_files: cannot write: it is a directory"
    ARGS --svg app_files)
  foreach(option predict roofline "algorithms=ring")
    string(REGEX REPLACE "=.*" "" name ${option})
    app_case(PROGRAM allreduce_bench NAME "${name} of another collective" RANKS 2 EXIT 2
      ERR "--${name}: it is of all_reduce, which --collective leaves out" ARGS --collective broadcast,barrier --${option})
  endforeach()
  app_case(PROGRAM allreduce_bench NAME "two ranks" RANKS 2 OUT "\"backend\":\"native\",\"shared\":true" "\"backend\":\"native, direct\"" "\"wrong\":0"
    ARGS --algorithms direct --json --max-bytes 300000 --factor 32 --rounds 1)
  app_case(PROGRAM allreduce_bench NAME "predictions of nothing" RANKS 2 EXIT 2 ERR "--predict: needs --algorithms of messages"
    ARGS --predict)
  app_case(PROGRAM allreduce_bench NAME "predictions" RANKS 2 COLUMNS 100
    OUT "by-cost chose, from so many bytes on:" "predictions, from 64 KiB on, in place: the median error of 12 is "
    "what by-cost chose takes " "roofline"
    ARGS --backends mpi --algorithms ring,recursive-doubling,halving-doubling,double-tree,direct,two-level,by-cost --predict --roofline --min-bytes 65536 --max-bytes 300000 --rounds 1)
  app_case(PROGRAM allreduce_bench NAME "an error is told once" RANKS 2 EXIT 2 ERR "--factor: 1 is not between 2 and 1024"
    ARGS --factor 1)
endif()

# study: runs, and what it refuses.
app_case(PROGRAM study NAME "help" OUT "--seeds" "--plan" ARGS --help)
app_case(PROGRAM study NAME "lists the studies" OUT " 1 ranks" " 7 regularization" ARGS --list)
app_case(PROGRAM study NAME "unknown command" EXIT 2 ERR "unknown command 'rnu': did you mean run? (choices: list, run, all, report); study run rnu runs a study"
  ARGS rnu)
app_case(PROGRAM study NAME "nothing to run" EXIT 2 ERR "run: name what to run" ARGS run)
app_case(PROGRAM study NAME "unknown study" EXIT 2 ERR "unknown study 'optimisers': did you mean optimizers?" ARGS run optimisers)
app_case(PROGRAM study NAME "a file that is not there" EXIT 2 ERR "app_files/none.toml: cannot open" ARGS run app_files/none.toml)
app_case(PROGRAM study NAME "quick and full" EXIT 2 ERR "--quick and --full exclude each other: give one" ARGS all --quick --full)
app_case(PROGRAM study NAME "no seeds" EXIT 2 ERR "--seeds: 0 is not between 1 and 100" ARGS all --seeds 0)
app_case(PROGRAM study NAME "one study twice" EXIT 2 ERR "optimizers: there are two studies of this name; name each once" ARGS run 4 optimizers --plan)
app_case(PROGRAM study NAME "unknown network" EXIT 2 ERR "optimizers: no run can be made: --model: unknown model 'resnet8': did you mean resnet9?"
  ARGS run optimizers --model resnet8 --dataset synthetic --out app_files/study_of_unknown_network)
app_case(PROGRAM study NAME "no data" EXIT 2 ERR "optimizers: no run can be made: app_files/none: no such data directory"
  ARGS run optimizers --data app_files/none --out app_files/study_without_data)
foreach(part run stop limit browser)
  add_test(NAME "study: ${part}" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_study.py ${part} $<TARGET_FILE:study>
    ${CMAKE_CURRENT_BINARY_DIR}/study_${part})
  set_tests_properties("study: ${part}" PROPERTIES ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 240)
  if(TANDEM_SANITIZE)  # minutes; the unit tests of studies are sanitized
    set_property(TEST "study: ${part}" APPEND PROPERTY LABELS long)
  endif()
endforeach()

# sgd_lab: its figures, and what it refuses.
app_case(PROGRAM sgd_lab NAME "help" OUT "--break" "--ranks" ARGS --help)
app_case(PROGRAM sgd_lab NAME "unknown part" EXIT 2 ERR "--break: unknown part 'sync-gard': did you mean sync-grad? (choices: sync-init,"
  ARGS --break sync-gard)
app_case(PROGRAM sgd_lab NAME "unknown chapter" EXIT 2 ERR "--chapter: unknown chapter 'overlap' (choices: step, ring, time, speed-up, batch-size, broken, all)"
  ARGS --chapter overlap)
app_case(PROGRAM sgd_lab NAME "no network" EXIT 2 ERR "--network: " "alhpa" ARGS --network alhpa=1ms)
app_case(PROGRAM sgd_lab NAME "a network that takes too long" EXIT 2
  ERR "--network: a message of 1 MiB takes 8.39 s there, and the lesson many of them; choose a network that takes 0.05 s or less"
  ARGS --network beta=1Mbit)
app_case(PROGRAM sgd_lab NAME "a network that loses messages" EXIT 2 ERR "--network: leave lose out" ARGS --network lose=0-1@1ms)
app_case(PROGRAM sgd_lab NAME "a network of so many hosts" EXIT 2 ERR "--network: leave hosts out" ARGS --network hosts=2)
app_case(PROGRAM sgd_lab NAME "a part that is not shown" EXIT 2 ERR "--break: is of chapter broken" ARGS --break order --chapter ring)
app_case(PROGRAM sgd_lab NAME "a network that is not shown" EXIT 2 ERR "--network: is of chapters time and speed-up"
  ARGS --network alpha=1ms --chapter ring)
app_case(PROGRAM sgd_lab NAME "no pictures" EXIT 2 ERR "--pictures: this chapter has none" ARGS --pictures app_files --chapter step)
app_case(PROGRAM sgd_lab NAME "pictures in no folder" EXIT 2
  ERR "cannot write: there is no directory app_files/none; make it, or name another" ARGS --pictures app_files/none)
app_case(PROGRAM sgd_lab NAME "pictures in a file" EXIT 2 ERR "app_files/plain_file" ARGS --pictures app_files/plain_file)
app_case(PROGRAM sgd_lab NAME "one rank" EXIT 2 ERR "--ranks: 1 is not between 2 and 8" ARGS --ranks 1)
app_case(PROGRAM sgd_lab NAME "unknown option" EXIT 2 ERR "unknown option --rank: did you mean --ranks?" ARGS --rank 2)
app_case(PROGRAM sgd_lab NAME "several processes" RANKS 2 EXIT 2
  ERR "started by mpirun as 2 processes, and sgd_lab is one, whose ranks are threads: start it alone, with --ranks 2" ARGS --chapter ring)
app_case(PROGRAM sgd_lab NAME "stray word" EXIT 2 ERR "unexpected argument 'sync-init'" ARGS sync-init)
app_case(PROGRAM sgd_lab NAME "a page in no folder" EXIT 2
  ERR "app_files/none/lesson.html: cannot write: there is no directory app_files/none; make it, or name another"
  ARGS --html app_files/none/lesson.html)
app_case(PROGRAM sgd_lab NAME "a page without a name" EXIT 2 ERR "--html" ARGS --html "")
foreach(part text page browser guide)
  add_test(NAME "sgd_lab: ${part}" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_sgd_lab.py ${part}
    $<TARGET_FILE:sgd_lab> ${CMAKE_CURRENT_BINARY_DIR}/sgd_lab_${part})
  set_tests_properties("sgd_lab: ${part}" PROPERTIES ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 240)
  if(TANDEM_SANITIZE)  # minutes; the unit tests of the lesson are sanitized
    set_property(TEST "sgd_lab: ${part}" APPEND PROPERTY LABELS long)
  endif()
endforeach()

# `tandem`: names, help and completion.
app_case(PROGRAM tandem_program NAME "help" OUT "usage: tandem COMMAND" "train                     train a network" ARGS help)
app_case(PROGRAM tandem_program NAME "nothing" OUT "usage: tandem COMMAND")
app_case(PROGRAM tandem_program NAME "version" OUT "tandem (Tandem) ${PROJECT_VERSION}" ARGS --version)
app_case(PROGRAM tandem_program NAME "help of a command" OUT "--layers" ARGS help train)
app_case(PROGRAM tandem_program NAME "a command" OUT "--device auto: " ARGS devices)
app_case(PROGRAM tandem_program NAME "a command by its program" OUT "--device auto: " ARGS device_query)
app_case(PROGRAM tandem_program NAME "the exit code of a command" EXIT 2 ERR "unknown option --epoch: did you mean --epochs?"
  ARGS train --epoch 3)
app_case(PROGRAM tandem_program NAME "unknown command" EXIT 2
  ERR "unknown command 'trian': did you mean train? (choices: train, report, predict, data," ARGS trian)
app_case(PROGRAM tandem_program NAME "unknown option" EXIT 2 ERR "unknown option --epochs: a command comes first" ARGS --epochs 3)
app_case(PROGRAM tandem_program NAME "unknown shell" EXIT 2 ERR "unknown shell 'csh'" ARGS completion csh)
app_case(PROGRAM tandem_program NAME "no shell" EXIT 2 ERR "name one shell: bash, zsh or fish" ARGS completion)
app_case(PROGRAM tandem_program NAME "data" OUT "usage: tandem data cifar10" "in the working directory" ARGS data --help)

# What a file of weights must tell before images are classified.
app_case(PROGRAM tandem_predict NAME "help" OUT "--weights" ARGS --help)
app_case(PROGRAM tandem_predict NAME "no weights" EXIT 2 ERR "--weights is required" ARGS a.png)
app_case(PROGRAM tandem_predict NAME "no images" EXIT 2 ERR "images is required" ARGS --weights app_files/named.safetensors)
app_case(PROGRAM tandem_predict NAME "no such file" EXIT 2 ERR "app_files/none.safetensors: cannot open"
  ARGS --weights app_files/none.safetensors a.png)
app_case(PROGRAM tandem_predict NAME "weights that tell no network" EXIT 2
  ERR "app_files/named.safetensors: says nothing of 'dataset'" ARGS --weights app_files/named.safetensors a.png)
app_case(PROGRAM tandem_predict NAME "top 0" EXIT 2 ERR "--top: 0 is not between 1 and"
  ARGS --weights app_files/named.safetensors --top 0 a.png)
app_case(PROGRAM tandem_report NAME "help" OUT "report.html" "--compare" ARGS --help)
app_case(PROGRAM tandem_report NAME "no run" EXIT 2 ERR "no run is named" "tandem_report RUN..." ARGS --compare a.html)
app_case(PROGRAM tandem_report NAME "no such folder" EXIT 2 ERR "app_files/none: is no folder of a run" ARGS app_files/none)
app_case(PROGRAM tandem_report NAME "folder of something else" EXIT 2 ERR "neither log.jsonl nor config.toml" ARGS app_files/empty)
app_case(PROGRAM tandem_report NAME "unknown option" EXIT 2 ERR "unknown option --compar: did you mean --compare?" ARGS --compar x)
app_case(PROGRAM tandem_report NAME "comparison without a name" EXIT 2 ERR "--compare" ARGS app_files --compare "")
foreach(part files browser)
  add_test(NAME "tandem_report: ${part}" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_report.py ${part}
    $<TARGET_FILE:cifar_train> $<TARGET_FILE:tandem_report> ${CMAKE_CURRENT_BINARY_DIR}/report_${part})
  set_tests_properties("tandem_report: ${part}" PROPERTIES ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 240)
  if(TANDEM_SANITIZE)  # minutes; the unit tests of reports are sanitized
    set_property(TEST "tandem_report: ${part}" APPEND PROPERTY LABELS long)
  endif()
endforeach()

# The pictures of docs/concepts are those that the program draws, and its pages quote the same numbers.
add_test(NAME "docs: pictures of concepts are those that the program draws"
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_pictures.py $<TARGET_FILE:pictures> ${CMAKE_CURRENT_BINARY_DIR}/pictures)
set_tests_properties("docs: pictures of concepts are those that the program draws" PROPERTIES ENVIRONMENT "${app_environment}" TIMEOUT 120)
