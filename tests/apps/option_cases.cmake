# What the command line and config files accept and refuse.
app_case(NAME "help" OUT "Usage: cifar_train" "Data\n" "Training\n" "Examples" "[cifar10]" COLUMNS 80 ARGS --help)
app_case(NAME "help on two ranks" RANKS 2 OUT "Usage: cifar_train" ARGS --help)
app_case(NAME "version" OUT "cifar_train (Tandem) ${PROJECT_VERSION}" ARGS --version)
app_case(NAME "last value counts" OUT "epochs = 3" ARGS --epochs 2 --epochs 3 --print-config)
app_case(NAME "flag off" OUT "nesterov = false" ARGS --no-nesterov --print-config)
app_case(NAME "defaults follow the optimizer" OUT "lr = 0.001" "weight-decay = 0.01" "nesterov = false"
  ARGS --optimizer adamw --print-config)
app_case(NAME "config file" OUT "lr = 0.05" "model = \"vgg_lite\"" "batch-norm = true" "global-batch-size = 1024"
  "data = \"a#b, c\"" ARGS --config app_files/good.toml --print-config)
app_case(NAME "command line wins over config" OUT "lr = 0.5" "model = \"vgg_lite\""
  ARGS --config app_files/good.toml --lr 0.5 --print-config)
app_case(NAME "batch size on the command line replaces the file's" OUT "\nbatch-size = 8"
  ARGS --config app_files/global_batch.toml --batch-size 8 --print-config)

app_case(NAME "the last batch is dropped" OUT "1 of 16 images per epoch" ARGS --dataset synthetic --model mnist_cnn --layers 1
  --limit-train 19 --limit-test 8 --global-batch-size 16 --epochs 1 --device cpu --drop-last)
app_case(NAME "who only evaluates drops nothing" OUT "test accuracy" ARGS --dataset synthetic --model mnist_cnn --layers 1
  --limit-train 19 --limit-test 8 --global-batch-size 32 --epochs 0 --device cpu --drop-last)
bad_input(NAME "all batches are dropped" ERR "drop_last leaves nothing: 19 examples do not fill a batch of 32"
  ARGS --dataset synthetic --limit-train 19 --limit-test 8 --global-batch-size 32 --drop-last)
bad_input(NAME "validation split of all" ERR "--validation-split 1: must be below 1" ARGS --validation-split 1)
bad_input(NAME "validation split of nothing" ERR "--validation-split 0.001: stratified_split: 0.001 of 19 examples would leave 19 and hold out 0"
  ARGS --dataset synthetic --limit-train 19 --limit-test 8 --validation-split 0.001)
bad_input(NAME "best by figures of test, which is held back" ERR "--best-by test_loss: with --validation-split the test images are evaluated once"
  ARGS --validation-split 0.1 --best-by test_loss)
bad_input(NAME "best by figures of nothing" ERR "--best-by validation_loss needs a --validation-split" ARGS --best-by validation_loss)
bad_input(NAME "early stopping by what is trained on" ERR "--early-stopping 3: the training loss tells nothing of other images"
  ARGS --early-stopping 3 --best-by train_loss)
bad_input(NAME "early stopping without patience" ERR "--early-stopping soon: 'soon' is not PATIENCE[,MIN_DELTA]" ARGS --early-stopping soon)
bad_input(NAME "an average that forgets nothing" ERR "--ema 1: must be below 1" ARGS --ema 1)
bad_input(NAME "early stopping without each evaluation" ERR "--evaluate-every 2: --early-stopping counts epochs"
  ARGS --evaluate-every 2 --early-stopping 3)
bad_input(NAME "two averages of the weights" ERR "--lookahead 5 and --ema 0.9 both average the weights; leave one out"
  ARGS --ema 0.9 --lookahead 5)
bad_input(NAME "slow weights that never move" ERR "--lookahead-decay 1.5: must be below 1" ARGS --lookahead 5 --lookahead-decay 1.5)
bad_input(NAME "slow weights that keep nothing" ERR "--lookahead-decay 0: must be above 0" ARGS --lookahead 5 --lookahead-decay 0)
bad_input(NAME "a decay of no slow weights" ERR "--lookahead-decay 0.9: of no use with --lookahead 0" ARGS --lookahead-decay 0.9)
bad_input(NAME "slow weights from the end on" ERR "--lookahead-power -1: must be at least 0" ARGS --lookahead 5 --lookahead-power -1)
bad_input(NAME "unknown views" ERR "--tta" "choices: none, flip, six" ARGS --tta seven)
bad_input(NAME "norms without a log" ERR "--log-norms needs a --log FILE" ARGS --log-norms)
bad_input(NAME "warm-up as long as the steps" ERR "--warmup-epochs 2: 4 steps of warm-up must be less than the 4 of the run"
  ARGS --dataset synthetic --limit-train 16 --limit-test 8 --global-batch-size 8 --schedule cosine --warmup-epochs 2 --steps 4)
bad_input(NAME "batch size 0" ERR "--batch-size 0: must be at least 1" ARGS --batch-size 0)
bad_input(NAME "global batch size 0" ERR "--global-batch-size 0: must be at least 1" ARGS --global-batch-size 0)
bad_input(NAME "negative lr" ERR "--lr -0.1: must be above 0" ARGS --lr -0.1)
bad_input(NAME "lr nan" ERR "--lr nan: must be finite" ARGS --lr nan)
bad_input(NAME "lr is text" ERR "--lr 'fast': not a number" ARGS --lr fast)
bad_input(NAME "epochs below none" ERR "--epochs -1.5: must be at least 0" ARGS --epochs -1.5)
bad_input(NAME "both ways a flip" ERR "'flip-alternating' is given twice (flip and flip-alternating count as one)"
  ARGS --augment flip,flip-alternating)
bad_input(NAME "warm-up in steps and in epochs" ERR "--warmup-steps 5 and --warmup-epochs 1 exclude each other"
  ARGS --schedule linear --warmup-steps 5 --warmup-epochs 1)
bad_input(NAME "start of no warm-up" ERR "--warmup-start-factor 0.2: there is no warm-up" ARGS --schedule linear --warmup-start-factor 0.2)
bad_input(NAME "warm-up of all steps, on two ranks" RANKS 2 ERR "--warmup-steps 3: 3 steps of warm-up must be less than the 3 of the run"
  ARGS --dataset synthetic --limit-train 16 --limit-test 8 --global-batch-size 8 --schedule linear --warmup-steps 3 --epochs 1.5)
app_case(NAME "a part of an epoch" OUT "2 of 8 images per epoch" "epoch 2/2" "after 3 steps" ARGS --dataset synthetic --model mnist_cnn --layers 1
  --limit-train 19 --limit-test 8 --global-batch-size 8 --epochs 1.5 --device cpu --drop-last --schedule linear)
bad_input(NAME "huge number" ERR "too large" ARGS --steps 99999999999999999999)
bad_input(NAME "huge number of epochs" ERR "must be at most 1000000" ARGS --epochs 99999999999999999999)
bad_input(NAME "tiny number" ERR "--lr 1e-400: too large or too small" ARGS --lr 1e-400)
bad_input(NAME "negative limit" ERR "--limit-train -5: must be at least 0" ARGS --limit-train -5)
bad_input(NAME "dropout 1" ERR "--dropout 1: must be below 1" ARGS --dropout 1)
bad_input(NAME "unknown model" ERR "--model" "vgg_lit" "did you mean vgg_lite?" ARGS --model vgg_lit)
bad_input(NAME "beginning of a model's name" ERR "--model: unknown model 'vgg': did you mean vgg_lite? (choices: vgg_lite,"
  ARGS --model vgg)
bad_input(NAME "model like none" ERR "--model: unknown model 'perceptron' (choices: vgg_lite," ARGS --model perceptron)
bad_input(NAME "unknown data set" ERR "--dataset" "did you mean cifar10?" ARGS --dataset cifar-10)
bad_input(NAME "unknown optimizer" ERR "--optimizer" "did you mean sgd?" ARGS --optimizer sdg)
bad_input(NAME "unknown schedule" ERR "--schedule" "did you mean cosine?" ARGS --schedule cosin)
bad_input(NAME "unknown backend" ERR "--backend" "choices: auto, self, " ARGS --backend sockets)
if(TANDEM_HAS_NCCL)
  bad_input(NAME "nccl on the CPU" ERR "backend nccl: rank" "on the CPU" "choose backend native" ARGS --backend nccl --device cpu)
else()
  bad_input(NAME "nccl in a build without it" ERR "backend nccl: this program was built without NCCL" "choose backend native"
    ARGS --backend nccl)
endif()
bad_input(NAME "momentum of Adam" ERR "--momentum 0.5: of no use with --optimizer adam, only with sgd"
  ARGS --optimizer adam --momentum 0.5)
app_case(NAME "momentum of a config file and Adam of the command line" OUT "lr = 0.001"
  ERR "note: app_files/momentum.toml:1: momentum = 0.9 is left out: --optimizer adamw has no use for it"
  ARGS --config app_files/momentum.toml --optimizer adamw --print-config)
app_case(NAME "momentum of a config file on two ranks" RANKS 2 ERR "momentum.toml:1: momentum = 0.9 is left out"
  ARGS --config app_files/momentum.toml --optimizer adamw --print-config)
bad_input(NAME "Nesterov's momentum of RMSprop" ERR "--nesterov: of no use with --optimizer rmsprop, only with sgd, muon"
  ARGS --optimizer rmsprop --momentum 0.5 --nesterov)
app_case(NAME "no Nesterov's momentum is what Adam has" OUT "nesterov = false" ARGS --optimizer adam --no-nesterov --print-config)
bad_input(NAME "auxiliary rate of SGD" ERR "--aux-lr 0.5: of no use with --optimizer sgd, only with --optimizer muon" ARGS --aux-lr 0.5)
bad_input(NAME "filters of SGD" ERR "--normalize-filters: of no use with --optimizer sgd, only with --optimizer muon"
  ARGS --normalize-filters)
app_case(NAME "defaults of Muon" OUT "lr = 0.24" "aux-lr = 0.1" "momentum = 0.6" "nesterov = true" "normalize-filters = true"
  "weight-decay = 0" ARGS --optimizer muon --print-config)
# Groups of parameters.
set(groups --dataset synthetic --model mnist_cnn --layers 2 --limit-train 16 --limit-test 8 --global-batch-size 8 --epochs 1 --device cpu)
app_case(NAME "groups of parameters are told" OUT "groups   *.bias: 3 parameters, 74 values: lr x 64, weight decay 0"
  "         features.0.weight: 1 parameter, 864 values: momentum 0, schedule cosine, of 3 steps, frozen from step 1 on"
  "         all others: 2 parameters" "test accuracy"
  ARGS ${groups} --param-group *.bias:lr-factor=64,weight-decay=0
  --param-group features.0.weight:momentum=0,schedule=cosine,schedule-steps=3,freeze-step=1)
app_case(NAME "of patterns that match one parameter the last one counts" OUT "groups   *: 3 parameters"
  "         *.bias: 3 parameters, 74 values: as all others"
  ARGS ${groups} --param-group *:lr-factor=0.5 --param-group *.bias:lr-factor=1)
app_case(NAME "groups of parameters in canonical mode on two ranks" RANKS 2 OUT "groups   *.bias: 3 parameters" "test accuracy"
  ARGS ${groups} --canonical 2 --check-replicas --param-group *.bias:freeze-step=1)
app_case(NAME "Muon on two ranks, with a group" RANKS 2 OUT "groups   *.bias: 3 parameters" "test accuracy"
  ARGS ${groups} --check-replicas --optimizer muon --aux-lr 0.05 --param-group *.bias:momentum=0.5)
app_case(NAME "groups as a config file has them" OUT "param-group = \"*.bias:lr-factor=64,weight-decay=0.25"
  " features.0.weight:freeze-step=3\"" ARGS --config app_files/groups.toml --print-config)
app_case(NAME "groups of the command line replace the file's" OUT "param-group = \"*:momentum=0.5\""
  ARGS --config app_files/groups.toml --param-group *:momentum=0.5 --print-config)
app_case(NAME "no groups in place of the file's" OUT "param-group = \"none\""
  ARGS --config app_files/groups.toml --param-group none --print-config)
bad_input(NAME "groups, no pattern" ERR "--param-group lr-factor=2: 'lr-factor=2' is no PATTERN:KEY=VALUE,... such as" ARGS --param-group lr-factor=2)
bad_input(NAME "groups, an empty pattern" ERR "--param-group :lr-factor=2: ':lr-factor=2' has no pattern" ARGS --param-group :lr-factor=2)
bad_input(NAME "groups, no value" ERR "--param-group *:lr-factor: 'lr-factor' is no PATTERN:KEY=VALUE,..." ARGS --param-group *:lr-factor)
bad_input(NAME "groups, an unknown key" ERR "--param-group *:lr-facter=2: unknown key 'lr-facter': did you mean lr-factor?"
  ARGS --param-group *:lr-facter=2)
bad_input(NAME "groups, a key twice" ERR "--param-group *:momentum=0,momentum=0.5: momentum is given twice for *; give it once"
  ARGS --param-group *:momentum=0,momentum=0.5)
bad_input(NAME "groups, a negative factor" ERR "--param-group *:lr-factor=-1: lr-factor=-1: must be a number >= 0" ARGS --param-group *:lr-factor=-1)
bad_input(NAME "groups, a weight decay of text" ERR "weight-decay=low: must be a number >= 0" ARGS --param-group *:weight-decay=low)
bad_input(NAME "groups, a momentum of 1" ERR "momentum=1: must be a number >= 0 and below 1" ARGS --param-group *:momentum=1)
bad_input(NAME "groups, a step that is none" ERR "freeze-step=1.5: must be a whole number of steps, 0 or more" ARGS --param-group *:freeze-step=1.5)
bad_input(NAME "groups, an unknown schedule" ERR "unknown schedule 'cosin': did you mean cosine?" ARGS --param-group *:schedule=cosin)
bad_input(NAME "groups, a length without a schedule" ERR "*: schedule-steps needs a schedule=NAME" ARGS --param-group *:schedule-steps=9)
bad_input(NAME "groups, momentum of Adam" ERR "--param-group *:momentum=0.5: --optimizer adam has no momentum; leave it out"
  ARGS --optimizer adam --param-group *:momentum=0.5)
bad_input(NAME "groups, nothing matches" ERR "--param-group '*.bia' matches no parameter of this" ARGS ${groups} --param-group *.bia:lr-factor=2)
bad_input(NAME "groups, no such name" ERR "did you mean 'features.0.bias'?" ARGS ${groups} --param-group feature.0.bias:lr-factor=2)
bad_input(NAME "groups, nothing is left" ERR "--param-group '*.bias': later patterns match all 3 parameters that it does"
  ARGS ${groups} --param-group *.bias:lr-factor=2 --param-group *:lr-factor=3)
bad_input(NAME "groups, all frozen" ERR "--param-group *:freeze-step=1: freezes all parameters before the run's 2 steps end"
  ARGS ${groups} --param-group *:freeze-step=1)
app_case(NAME "groups, all frozen at the end" OUT "test accuracy" ARGS ${groups} --param-group *:freeze-step=2)
app_case(NAME "groups on one rank only" RANKS 2 EXIT 2 ERR "configuration differs between ranks" "--param-group"
  ARGS ${groups} : ${groups} --param-group *:lr-factor=2)
bad_input(NAME "steps of another schedule" ERR "--step-epochs 3: of no use with --schedule one-cycle, only with --schedule step"
  ARGS --step-epochs 3)
bad_input(NAME "step factor of another schedule" ERR "--step-factor 0.5: of no use with --schedule cosine, only with --schedule step"
  ARGS --schedule cosine --step-factor 0.5)
app_case(NAME "steps have defaults" OUT "step-epochs = 10" "step-factor = 0.1" ARGS --schedule step --print-config)
bad_input(NAME "folder of synthetic images" ERR "--data app_files: of no use with --dataset synthetic"
  ARGS --dataset synthetic --data app_files)
bad_input(NAME "log and weights in one file" ERR "--log and --save-weights are both out.bin: name two files"
  ARGS --dataset synthetic --log out.bin --save-weights out.bin)
bad_input(NAME "one file by two names" ERR "--log and --tuning-file are both app_files/../out.bin: name two files"
  ARGS --dataset synthetic --autotune --log app_files/../out.bin --tuning-file out.bin)
bad_input(NAME "unknown convolution code" ERR "--conv-impl" "did you mean cudnn?" ARGS --conv-impl cudn)
bad_input(NAME "unknown product code" ERR "--gemm-impl" "did you mean cublas?" ARGS --gemm-impl cubla)
bad_input(NAME "cuDNN on the CPU" ERR "--conv-impl cudnn: cuDNN runs on GPUs, not on the CPU" "choose auto"
  ARGS --dataset synthetic --device cpu --conv-impl cudnn)
bad_input(NAME "cuBLAS on the CPU" ERR "--gemm-impl cublas: cuBLAS runs on GPUs, not on the CPU" "choose auto"
  ARGS --dataset synthetic --device cpu --gemm-impl cublas)
app_case(NAME "code is kept in the configuration" OUT "conv-impl = \"fused\"" "gemm-impl = \"fused\""
  ARGS --conv-impl fused --gemm-impl fused --print-config)
app_case(NAME "code that was chosen is told" OUT "conv-impl reference, gemm-impl fused"
  ARGS --dataset synthetic --limit-train 32 --limit-test 32 --epochs 0 --device cpu --conv-impl reference --gemm-impl fused)
bad_input(NAME "measured and forced code" ERR "--autotune: of no use with --conv-impl fused, only with --conv-impl auto"
  ARGS --dataset synthetic --autotune --conv-impl fused)
bad_input(NAME "tuning file that is not there" ERR "--tuning-file none.json: no such file; --autotune makes one"
  ARGS --dataset synthetic --tuning-file none.json)
bad_input(NAME "oneDNN in halves" ERR "--conv-impl onednn computes in f32 only, not in --precision fp16"
  ARGS --dataset synthetic --conv-impl onednn --precision fp16)
if(NOT TANDEM_HAS_ONEDNN)
  bad_input(NAME "oneDNN in a build without it" ERR "--conv-impl onednn: this build has no oneDNN (libdnnl-dev); choose auto or fused"
    ARGS --dataset synthetic --device cpu --conv-impl onednn)
endif()
bad_input(NAME "tuning file in no folder" ERR "--tuning-file /none/t.json: cannot write"
  ARGS --dataset synthetic --limit-train 32 --limit-test 32 --epochs 0 --device cpu --autotune --tuning-file /none/t.json)
set(one_epoch --dataset synthetic --model mnist_cnn --layers 1 --limit-train 32 --limit-test 32 --epochs 1 --device cpu)
app_case(NAME "measures convolutions" OUT "convolution passes, kept in app_files/measured.json" "forward         f32 "
  "direct" " us" ARGS ${one_epoch} --autotune --tuning-file app_files/measured.json)
app_case(NAME "convolves by what was measured" OUT "tuned 0 convolution passes\n" "direct"
  NOT_ERR "note" ARGS ${one_epoch} --autotune --tuning-file app_files/measured.json)
set_tests_properties("cifar_train: measures convolutions" PROPERTIES FIXTURES_SETUP measured)
set_property(TEST "cifar_train: convolves by what was measured" APPEND PROPERTY FIXTURES_REQUIRED measured)
bad_input(NAME "tuning in a file of something else" ERR "--tuning-file app_files/notes.txt: holds something else, which --autotune would"
  ARGS ${one_epoch} --autotune --tuning-file app_files/notes.txt)
app_case(NAME "another file as tuning file" OUT "test accuracy" ERR "note: --tuning-file app_files/plain_file: ignored: not a tuning file"
  ARGS ${one_epoch} --tuning-file app_files/plain_file)
if(TANDEM_CUDA_IS_SIMULATED)
  bad_input(NAME "replicas and a profile of GPUs" ERR "--replicas 2: a profile of GPUs is of one rank per process"
    ARGS --dataset synthetic --device cuda --replicas 2 --run-dir replicas_profile --profile steps=2:3)
  bad_input(NAME "replicas and a trace of GPUs" ERR "--replicas 2: a trace of GPUs is of one rank per process"
    ARGS --dataset synthetic --device cuda --replicas 2 --no-run-dir --trace t.json)
  bad_input(NAME "cuDNN on a simulated GPU" ERR "--conv-impl cudnn: cuDNN does not run on simulated GPUs" "choose auto"
    ARGS --dataset synthetic --device cuda --conv-impl cudnn)
  bad_input(NAME "cuBLAS on a simulated GPU" ERR "--gemm-impl cublas: cuBLAS does not run on simulated GPUs" "choose auto"
    ARGS --dataset synthetic --device cuda --gemm-impl cublas)
endif()
# Libraries that are missing, too old or something else, on machines with a GPU.
if(TARGET tandem_fake_cudnn_too_old)
  set(on_gpu --dataset synthetic --limit-train 32 --limit-test 32 --epochs 0 --device cuda)
  set(missing /none/missing.so)
  set(old_cudnn $<TARGET_FILE:tandem_fake_cudnn_too_old>)
  set(old_cublas $<TARGET_FILE:tandem_fake_cublas_too_old>)
  app_case(NAME "cuDNN is missing" NEEDS_CUDA EXIT 2 ENVIRONMENT TANDEM_CUDNN_LIBRARY=${missing}
    ERR "--conv-impl cudnn: cuDNN 9.0 or newer was not found (${missing}" "choose auto" ARGS ${on_gpu} --conv-impl cudnn)
  app_case(NAME "cuDNN is too old" NEEDS_CUDA EXIT 2 ENVIRONMENT TANDEM_CUDNN_LIBRARY=${old_cudnn}
    ERR "is cuDNN 8.9.7, but 9.0 is the least" ARGS ${on_gpu} --conv-impl cudnn)
  app_case(NAME "cuDNN is something else" NEEDS_CUDA EXIT 2 ENVIRONMENT TANDEM_CUDNN_LIBRARY=${old_cublas}
    ERR "it has no cudnnGetVersion" ARGS ${on_gpu} --conv-impl cudnn)
  app_case(NAME "cuBLAS is missing" NEEDS_CUDA EXIT 2 ENVIRONMENT TANDEM_CUBLAS_LIBRARY=${missing}
    ERR "--gemm-impl cublas: cuBLAS" "was not found (${missing}" "choose auto" ARGS ${on_gpu} --gemm-impl cublas)
  app_case(NAME "cuBLAS is too old" NEEDS_CUDA EXIT 2 ENVIRONMENT TANDEM_CUBLAS_LIBRARY=${old_cublas}
    ERR "is cuBLAS 9.2.2, but" ARGS ${on_gpu} --gemm-impl cublas)
  app_case(NAME "auto does without libraries, and says so" NEEDS_CUDA OUT "test accuracy"
    ENVIRONMENT TANDEM_CUDNN_LIBRARY=${missing} TANDEM_CUBLAS_LIBRARY=${old_cublas}
    ERR "note: convolutions by our own kernels: cuDNN 9.0 or newer was not found" "matrix products by our own kernels"
    ARGS ${on_gpu})
endif()
bad_input(NAME "tf32 on a CPU" ERR "error: --precision tf32 is for a GPU's tensor cores, not for cpu: use fp32 here"
  ARGS --precision tf32 --device cpu)
bad_input(NAME "unknown precision" ERR "--precision half: unknown precision 'half' (choices: fp32, 3xtf32, tf32, fp16, bf16)"
  ARGS --precision half)
bad_input(NAME "precision by the name of a dtype" ERR "--precision f16: unknown precision 'f16': did you mean fp16?"
  ARGS --precision f16)
bad_input(NAME "loss scale of text" ERR "--loss-scale auto: give dynamic, none or a number above 0"
  ARGS --precision fp16 --loss-scale auto)
bad_input(NAME "loss scale 0" ERR "--loss-scale 0: give dynamic, none or a number above 0"
  ARGS --precision fp16 --loss-scale 0)
bad_input(NAME "loss scale in f32" ERR "--loss-scale dynamic: of no use with --precision fp32, only with fp16, bf16"
  ARGS --loss-scale dynamic)
bad_input(NAME "half all-reduce in f32" ERR "--allreduce-dtype half: of no use with --precision fp32" ARGS --allreduce-dtype half)
bad_input(NAME "unknown all-reduce dtype" ERR "--allreduce-dtype" "did you mean half?" ARGS --allreduce-dtype haf)
bad_input(NAME "no masters in f32" ERR "--no-master-weights: of no use with --precision fp32" ARGS --no-master-weights)
app_case(NAME "defaults follow the precision" OUT "loss-scale = \"dynamic\"" "allreduce-dtype = \"fp32\""
  ARGS --precision fp16 --print-config)
app_case(NAME "bf16 needs no loss scale" OUT "loss-scale = \"none\"" ARGS --precision bf16 --print-config)
bad_input(NAME "unknown augmentation" ERR "--augment" "flp" "flip" ARGS --augment crop,flp)
bad_input(NAME "unknown progress" ERR "--progress" "did you mean plain?" ARGS --progress plan)
bad_input(NAME "unknown option" ERR "unknown option --lrr: did you mean --lr?" ARGS --lrr 0.1)
bad_input(NAME "unknown option with value" ERR "unknown option --epoch: did you mean --epochs?" ARGS --epoch=4)
bad_input(NAME "stranger" ERR "unknown option --transmogrify: --help lists all options" ARGS --transmogrify)
bad_input(NAME "two lines in a value" ERR "error: 'two\\x0alines': control characters are not taken" ARGS --model "two
lines")
bad_input(NAME "two lines in a config file" ERR "two_lines.toml:1: 'two\\x0alines': control characters are not taken"
  ARGS --config app_files/two_lines.toml)
bad_input(NAME "stray word" ERR "unexpected argument 'vgg_lite'" ARGS vgg_lite)
bad_input(NAME "missing value" ERR "--lr needs a value" ARGS --epochs 2 --lr)
bad_input(NAME "flag with another value" ERR "--nesterov = maybe: a flag takes true or false" ARGS --nesterov=maybe)
bad_input(NAME "flag with a number" ERR "--drop-last = 2: a flag takes true or false" ARGS --drop-last=2)
bad_input(NAME "flag of the program itself with a number" ERR "--version = 7: a flag takes true or false" ARGS --version=7)
bad_input(NAME "help with a number" ERR "--help = 3: a flag takes true or false" ARGS --help=3)
bad_input(NAME "flag off with a number" ERR "--no-nesterov = 1: a flag takes true or false" ARGS --no-nesterov=1)
bad_input(NAME "an option behind the end of options" ERR "unexpected argument '--epochs': what follows -- is no option"
  ARGS -- --epochs 3)
bad_input(NAME "unknown before the end of options" ERR "unknown option --epoch: did you mean --epochs" ARGS --epoch -- --lr)
app_case(NAME "help before an option without its value" OUT "Usage: cifar_train" COLUMNS 80 ARGS --help --lr)
app_case(NAME "a recipe, and options that go before it" OUT "model = \"airbench94\"" "lr = 0.5" "momentum = 0.9" "lookahead = 5"
  ARGS --recipe airbench94 --lr 0.5 --config app_files/momentum.toml --print-config)
app_case(NAME "choices of a config file, which goes before a recipe" OUT "schedule = \"one-cycle\"" "optimizer = \"adamw\"" "warmup-steps = 0"
  ERR "airbench94.toml:22: momentum = 0.85 is left out: --optimizer adamw has no use for it" "warmup-steps = 109 is left out"
  ARGS --recipe airbench94 --config app_files/other_choices.toml --print-config)
app_case(NAME "a recipe without its warm-up" OUT "warmup-steps = 0" ERR "warmup-start-factor = 0.2 is left out: --warmup-steps 0 has no use for it"
  ARGS --recipe airbench94 --warmup-steps 0 --print-config)
app_case(NAME "the recipe of ResNet-9" OUT "model = \"resnet9\"" "global-batch-size = 512" "warmup-epochs = 5"
  ARGS --recipe dawn --print-config)
app_case(NAME "the recipe of Muon" OUT "optimizer = \"muon\"" "global-batch-size = 2000" "aux-lr = 106" "schedule = \"linear\""
  "tta = \"six\"" ARGS --recipe muon --print-config)
app_case(NAME "the recipe of the bag of tricks" OUT "model = \"bag_of_tricks\"" "ghost-batch = 32" "ema-every = 5" "ema-warm-up = false"
  "final-lr-steps = 195" "tta = \"flip\"" ARGS --recipe bag-of-tricks --print-config)
app_case(NAME "the recipe of Hiverge" OUT "activation = \"silu\"" "unit-head = true" "normalize-every = \"2,15\"" "whitening-images = 960"
  "tta = \"six-equal\"" "tta-share = 0.25" ARGS --recipe hiverge --print-config)
app_case(NAME "an option before a recipe of Muon" OUT "optimizer = \"sgd\"" ERR "hiverge.toml:" "normalize-every" "newton-schulz"
  ARGS --recipe hiverge --optimizer sgd --print-config)
app_case(NAME "a recipe whose filters keep their norms" OUT "normalize-filters = false"
  ERR "normalize-every = 2,15 is left out: --no-normalize-filters has no use for it" ARGS --recipe hiverge --no-normalize-filters --print-config)
app_case(NAME "a recipe without its initialisation" OUT "whitening = false" "identity-filters = false"
  ARGS --recipe airbench94 --no-whitening --no-identity-filters --print-config)
bad_input(NAME "no whitening of another network" ERR "--no-whitening: of no use with --model resnet9, only with airbench94"
  ARGS --model resnet9 --no-whitening)
bad_input(NAME "no whitening whose bias is drawn" ERR "draw_whitening_bias without whitening"
  ARGS --dataset synthetic --model airbench94 --no-whitening --draw-whitening-bias)
bad_input(NAME "no alpha" ERR "--celu-alpha 0: must be at least 1e-06" ARGS --model bag_of_tricks --celu-alpha 0)
bad_input(NAME "a negative alpha" ERR "--celu-alpha -0.3: must be at least 1e-06" ARGS --model bag_of_tricks --celu-alpha -0.3)
bad_input(NAME "an alpha that is no number" ERR "--celu-alpha nan: must be finite" ARGS --model bag_of_tricks --celu-alpha nan)
bad_input(NAME "alpha of another network" ERR "--celu-alpha 0.5: of no use with --model resnet9, only with --model bag_of_tricks"
  ARGS --model resnet9 --celu-alpha 0.5)
bad_input(NAME "a negative ghost batch" ERR "--ghost-batch -1: must be at least 0" ARGS --model bag_of_tricks --ghost-batch -1)
bad_input(NAME "a ghost batch that does not divide" ERR "--ghost-batch 5: the 12 images that a rank of"
  ARGS --dataset synthetic --limit-train 24 --limit-test 8 --model bag_of_tricks --width 0.05 --ghost-batch 5 --batch-size 12)
bad_input(NAME "a ghost batch and an incomplete last batch" ERR "--ghost-batch 4: the 6 images of an epoch's last batch" "--drop-last"
  ARGS --dataset synthetic --limit-train 30 --limit-test 8 --model bag_of_tricks --width 0.05 --ghost-batch 4 --batch-size 12)
bad_input(NAME "images kept on a GPU by a run on the CPU"
  ERR "--resident-data on: the run computes on the CPU, where the images are in any case; leave it out, or add --device cuda"
  ARGS --device cpu --dataset synthetic --limit-train 8 --limit-test 4 --resident-data on)
bad_input(NAME "no share of views" ERR "--tta-share 0: must be above 0" ARGS --tta six --tta-share 0)
bad_input(NAME "more than all by views" ERR "--tta-share 1.5: must be at most 1" ARGS --tta six --tta-share 1.5)
bad_input(NAME "a share of no views" ERR "--tta-share 0.5: of no use with --tta none" ARGS --tta-share 0.5)
bad_input(NAME "unknown views that are nearly six" ERR "--tta: unknown tta 'six-equals': did you mean six-equal?" ARGS --tta six-equals)
bad_input(NAME "unknown activation" ERR "--activation: unknown activation 'silo': did you mean silu?" ARGS --model airbench94 --activation silo)
bad_input(NAME "norms restored by a rule of no use" ERR "--normalize-every 3: of no use with --no-normalize-filters; leave it out"
  ARGS --dataset synthetic --optimizer muon --normalize-filters=false --normalize-every 3)
bad_input(NAME "an average's pace without one" ERR "--ema-every 5: of no use with --ema 0" ARGS --dataset synthetic --ema-every 5)
bad_input(NAME "norms restored never" ERR "--normalize-every 0: give a number of steps from 1" ARGS --optimizer muon --normalize-every 0)
bad_input(NAME "coefficients that are two" ERR "--newton-schulz 1,2: give three numbers" ARGS --optimizer muon --newton-schulz 1,2)
bad_input(NAME "coefficients that are no numbers" ERR "--newton-schulz 1,2,inf: give three numbers" ARGS --optimizer muon --newton-schulz 1,2,inf)
bad_input(NAME "no images to whiten by" ERR "--whitening-images 0: must be at least 1" ARGS --model airbench94 --whitening-images 0)
bad_input(NAME "a low rate for longer than the run" ERR "--final-lr-steps 4:" "of the run"
  ARGS --dataset synthetic --limit-train 24 --limit-test 8 --model small_cnn --batch-size 12 --epochs 1 --schedule linear --final-lr-steps 4)
bad_input(NAME "unknown recipe" ERR "--recipe: unknown recipe 'airbench': did you mean airbench94?" ARGS --recipe airbench)
bad_input(NAME "two recipes" ERR "--recipe is given more than once: give one" ARGS --recipe airbench94 --recipe airbench94)
bad_input(NAME "two config files" ERR "--config is given more than once"
  ARGS --config app_files/good.toml --config app_files/global_batch.toml)
bad_input(NAME "two batch sizes" ERR "--batch-size and --global-batch-size exclude each other"
  ARGS --batch-size 8 --global-batch-size 16)
bad_input(NAME "warm-up of one-cycle" ERR "--warmup-epochs" ARGS --warmup-epochs 1)
bad_input(NAME "warm-up longer than the run" ERR "--warmup-epochs 5" "--epochs 5"
  ARGS --schedule cosine --warmup-epochs 5 --epochs 5)
bad_input(NAME "nesterov without momentum" ERR "--nesterov needs a --momentum" ARGS --nesterov --momentum 0)
bad_input(NAME "unknown device" ERR "--device gpu" "give auto, cpu, cuda or cuda:N" "cpu" ARGS --device gpu)
bad_input(NAME "device index that is no number" ERR "--device cuda:x" "cuda:N" ARGS --device cuda:x)
if(TANDEM_HAS_CUDA)
  bad_input(NAME "CUDA device that is not there" ERR "--device cuda:99" ARGS --device cuda:99)
else()
  bad_input(NAME "cuda in a build without it" ERR "error: --device cuda: this build has no CUDA (TANDEM_CUDA=OFF)" ARGS --device cuda)
  bad_input(NAME "cuda:1 in a build without it" ERR "--device cuda:1" "TANDEM_CUDA=OFF" ARGS --device cuda:1)
endif()
bad_input(NAME "micro-batches do not divide" ERR "--global-batch-size 10" "4 micro-batches"
  ARGS --global-batch-size 10 --grad-accumulation 4)
bad_input(NAME "canonical, no power of two" ERR "--canonical 3: must be 1, 2, 4, 8, ... micro-batches" ARGS --canonical 3)
bad_input(NAME "canonical, more micro-batches than images" ERR "--canonical 32: the 16 images of a batch cannot be cut evenly"
  ARGS --canonical 32 --global-batch-size 16)
bad_input(NAME "canonical and gradients in half" ERR "--canonical 4: gradients are added up and exchanged in f32"
  ARGS --canonical 4 --precision fp16 --allreduce-dtype half)
bad_input(NAME "canonical and accumulation" ERR "--canonical" "grad-accumulation" ARGS --canonical 4 --grad-accumulation 2)
# What messages cost: measured, kept, and used again.
set(by_cost ${one_epoch} --replicas 2 --threads 1 --comm-algorithm by-cost --comm-costs app_files/costs.json)
app_case(NAME "measures messages" OUT "  messages 4 B in " "  sums     by " " kept in app_files/costs.json"
  NOT_ERR "note" ARGS ${by_cost} --tune-comm)
app_case(NAME "exchanges by what was measured" OUT "  messages 4 B in " "  sums     by " NOT_ERR "note" ARGS ${by_cost})
set_tests_properties("cifar_train: measures messages" PROPERTIES FIXTURES_SETUP message_costs)
app_case(NAME "message costs of other ranks" OUT "test accuracy"
  ERR "note: --comm-costs app_files/costs.json: holds nothing for backend threads, ranks 3 " ARGS ${by_cost} --replicas 3 --batch-size 8)
foreach(case "exchanges by what was measured" "message costs of other ranks")
  set_property(TEST "cifar_train: ${case}" APPEND PROPERTY FIXTURES_REQUIRED message_costs)
endforeach()
app_case(NAME "nothing to choose in shared memory" OUT "test accuracy" ERR "note: --tune-comm: nothing to choose" "ranks of one host add up in shared memory"
  ARGS ${one_epoch} --replicas 2 --threads 1 --tune-comm)
app_case(NAME "nothing to choose for one rank" OUT "test accuracy" ERR "note: --tune-comm: one rank exchanges nothing"
  ARGS ${one_epoch} --tune-comm)
bad_input(NAME "message costs that are not there" ERR "--comm-costs none.json: no such file; --tune-comm makes one"
  ARGS --dataset synthetic --comm-costs none.json)
bad_input(NAME "message costs in a file of something else" ERR "--comm-costs app_files/notes.txt: holds something else, which --tune-comm would"
  ARGS ${one_epoch} --tune-comm --comm-costs app_files/notes.txt)
bad_input(NAME "message costs and one algorithm" ERR "--tune-comm: of no use with --comm-algorithm ring" ARGS --tune-comm --comm-algorithm ring)
app_case(NAME "message costs and a library" EXIT 2 ERR "--tune-comm: is for backends native and threads, and --backend self chooses for itself"
  ARGS --backend self --tune-comm)
bad_input(NAME "another file as message costs" ERR "--comm-costs app_files/plain_file: not a file of message costs"
  ARGS ${one_epoch} --threads 1 --comm-algorithm by-cost --comm-costs app_files/plain_file)
bad_input(NAME "damaged message costs" ERR "--comm-costs app_files/damaged_costs.json: damaged: something of it is missing"
  ARGS ${one_epoch} --threads 1 --comm-algorithm by-cost --comm-costs app_files/damaged_costs.json)
app_case(NAME "damaged message costs are measured anew" OUT "  messages 4 B in " "kept in app_files/damaged_too.json" ERR "note: --comm-costs app_files/damaged_too.json: damaged"
  ARGS ${one_epoch} --replicas 2 --threads 1 --comm-algorithm by-cost --tune-comm --comm-costs app_files/damaged_too.json)
bad_input(NAME "an algorithm that there is not" ERR "--comm-algorithm" "rign" "did you mean ring?"
  ARGS ${one_epoch} --threads 1 --comm-algorithm rign)
app_case(NAME "a simulated network" OUT "  network  simulated: alpha=1ms beta=1.1GB local-alpha=2us local-beta=4GB hosts=2x1" "  sums     by " "predicted for the simulated 1000 us"
  ARGS ${one_epoch} --replicas 2 --threads 1 --simulate-network alpha=1ms)
app_case(NAME "a simulated network of one rank" OUT "backend self" "predicted for the simulated 1000 us" ARGS ${one_epoch} --threads 1 --simulate-network alpha=1ms)
bad_input(NAME "a simulated network of other ranks" ERR "--simulate-network: network: hosts=2x2 are 4 ranks, and here are 2; start 4, or leave hosts out"
  ARGS ${one_epoch} --replicas 2 --simulate-network hosts=2x2)
bad_input(NAME "a simulated network that is none" ERR "--simulate-network" "network: alpha=1 is no time" ARGS --simulate-network alpha=1)
app_case(NAME "a simulated network and a library" EXIT 2 ERR "--simulate-network: holds up messages of backends native and threads, and --backend mpi sends its own; leave one out"
  ARGS --backend mpi --simulate-network alpha=1ms)
bad_input(NAME "a simulated network and shared memory" ERR "--simulate-network: holds up messages, and --comm-algorithm shared-memory sends none; leave one out"
  ARGS --replicas 2 --comm-algorithm shared-memory --simulate-network alpha=1ms)
app_case(NAME "a progress thread" OUT "backend threads (shared-memory, progress thread)" "test accuracy" NOT_ERR "note"
  ARGS ${one_epoch} --replicas 2 --threads 1 --comm-progress thread)
app_case(NAME "sums that are polled" OUT "backend threads (shared-memory, polled)" "test accuracy" NOT_ERR "note"
  ARGS ${one_epoch} --replicas 2 --threads 1 --comm-progress poll)
app_case(NAME "a progress thread for one rank" OUT "1 x 1 thread on cpu, backend self" "test accuracy" NOT_ERR "note" ARGS ${one_epoch} --threads 1 --comm-progress thread)
app_case(NAME "a progress thread and a backend that needs none" EXIT 2
  ERR "--comm-progress thread: is for backends native, threads and mpi, and --backend self needs none; leave one out" ARGS --backend self --comm-progress thread)
app_case(NAME "replicas and another backend" EXIT 2 ERR "--replicas 2: ranks in one process exchange gradients by backend threads, not self"
  ARGS --replicas 2 --backend self)
bad_input(NAME "a trace that is named as its picture" ERR "--trace t.html: a trace is JSON, and a picture of a step is written beside it"
  ARGS --dataset synthetic --trace t.html)
bad_input(NAME "log and trace in one file" ERR "--log and --trace are both out.json: name two files"
  ARGS --dataset synthetic --log out.json --trace out.json)
bad_input(NAME "log and the picture of a trace in one file" ERR "--log and the picture of --trace are both out.html: name two files"
  ARGS --dataset synthetic --log out.html --trace out.json)
bad_input(NAME "a trace in place of the settings of its run" ERR "the settings of --run-dir and --trace are both r/config.toml: name two files"
  ARGS --dataset synthetic --run-dir r --trace r/config.toml)
bad_input(NAME "the picture of a trace in place of a run's report" ERR "the report of --run-dir and the picture of --trace are both r/report.html"
  ARGS --dataset synthetic --run-dir r --trace r/report.json)
bad_input(NAME "threads without replicas" ERR "--backend threads: joins ranks that are threads of one process" "--replicas N"
  ARGS --backend threads)
bad_input(NAME "canonical and autotune" ERR "--canonical 4" "--autotune" ARGS --canonical 4 --autotune)
bad_input(NAME "model has no use for it" ERR "small_cnn" ARGS --dataset synthetic --drop-path 0.5)
bad_input(NAME "model has one width" ERR "--width 0.5: of no use with --model small_cnn, only with airbench94, airbench95, airbench96"
  ARGS --dataset synthetic --width 0.5)
bad_input(NAME "no width" ERR "--width 0: must be above 0" ARGS --model airbench94 --width 0)
bad_input(NAME "large width" ERR "--width 17: must be at most 16" ARGS --model airbench94 --width 17)

app_case(NAME "ranks do not divide the batch" RANKS 2 EXIT 2 ERR "--global-batch-size 31" "2 ranks"
  ARGS --global-batch-size 31)
app_case(NAME "replicas in two processes" RANKS 2 EXIT 2 ERR "--replicas 2: mpirun started 2 processes"
  ARGS --replicas 2)
app_case(NAME "canonical, more ranks than micro-batches" RANKS 2 EXIT 2
  ERR "--canonical 1: takes 1, 2, 4, ... up to 1 ranks, and there are 2" ARGS --canonical 1)
app_case(NAME "self with two ranks" RANKS 2 EXIT 2 ERR "self" ARGS --backend self)
app_case(NAME "different settings on two ranks" RANKS 2 EXIT 2
  ERR "configuration differs between ranks" "--lr is 0.1 on rank 0 and 0.2 on rank 1" ARGS --lr 0.1 : --lr 0.2)
app_case(NAME "different images on two ranks" RANKS 2 EXIT 2 ERR "differs between ranks" "--limit-train"
  ARGS --dataset synthetic --limit-train 100 : --dataset synthetic --limit-train 200)
app_case(NAME "threads on one rank only" RANKS 2 OUT "test accuracy"
  ARGS --dataset synthetic --limit-train 32 --limit-test 32 --epochs 1 --threads 1 :
  --dataset synthetic --limit-train 32 --limit-test 32 --epochs 1)
bad_input(NAME "log-every without a log" ERR "--log-every 2 needs a --log FILE" ARGS --log-every 2)
app_case(NAME "evaluation only needs no schedule" OUT "test accuracy"
  ARGS --dataset synthetic --limit-train 32 --limit-test 32 --epochs 0 --schedule cosine --warmup-epochs 1)
bad_input(NAME "crop larger than the image" ERR "crop" ARGS --dataset synthetic --augment crop-reflect=32)
bad_input(NAME "cutout larger than the image" ERR "cutout-inside=33 needs images as large as that"
  ARGS --dataset synthetic --augment cutout-inside=33)
app_case(NAME "bad value on one rank" RANKS 2 EXIT 2 ERR "rank 1: --lr -1: must be above 0" ARGS --lr 0.1 : --lr -1)

set(toml app_files)
bad_input(NAME "config missing" ERR "--config ${toml}/none.toml: no such file" ARGS --config ${toml}/none.toml)
bad_input(NAME "config is a directory" ERR "--config ${toml}/directory.toml: is a directory"
  ARGS --config ${toml}/directory.toml)
bad_input(NAME "config unknown key" ERR "unknown_key.toml:2: unknown option 'learning-rte'"
  ARGS --config ${toml}/unknown_key.toml)
bad_input(NAME "config near key" ERR "near_key.toml:1: unknown option 'momentm': did you mean momentum?"
  ARGS --config ${toml}/near_key.toml)
bad_input(NAME "config bad value" ERR "bad_value.toml:2: --lr -1: must be above 0" ARGS --config ${toml}/bad_value.toml)
bad_input(NAME "config bad type" ERR "bad_type.toml:1: --epochs 'many': not a number"
  ARGS --config ${toml}/bad_type.toml)
bad_input(NAME "config syntax" ERR "syntax.toml:1: " "write one 'name = value' per line" ARGS --config ${toml}/syntax.toml)
bad_input(NAME "config section" ERR "section.toml:1: 'training' is a section" ARGS --config ${toml}/section.toml)
bad_input(NAME "config key twice" ERR "twice.toml:2: " "cannot redefine existing integer 'epochs'" ARGS --config ${toml}/twice.toml)
bad_input(NAME "config without quotes" ERR "unquoted.toml:1: " "text in quotes" ARGS --config ${toml}/unquoted.toml)
bad_input(NAME "config with two batch sizes" ERR "both_batches.toml: batch-size and global-batch-size exclude"
  ARGS --config ${toml}/both_batches.toml)
