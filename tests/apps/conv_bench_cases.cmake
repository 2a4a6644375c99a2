# What conv_bench accepts, refuses and prints.
# bench_case(NAME text, and what app_case takes)
function(bench_case)
  app_case(PROGRAM conv_bench ${ARGN})
endfunction()
# bench_refuses(NAME text ERR text... ARGS arg...): exit code 2 and one line that has these texts.
function(bench_refuses)
  app_case(PROGRAM conv_bench EXIT 2 ${ARGN})
endfunction()

set(tiny --shape 2,3,6,6,8,3,3,1,1)
# Ceilings that are given need not be measured.
set(quick --groups 1 --launches 1 --warmup 0 --peak-flops 1e11 --peak-bandwidth 1e10)

bench_case(NAME "help" OUT "--layers" "vgg_lite," "mnist_cnn, resnet18, airbench94" "onednn-unfused" ARGS --help)
bench_case(NAME "a shape" OUT "6x6 3->8 3x3, batch 2, f32" "fwd   ours" "dgrad ours" "wgrad ours" "bwd   ours"
  "both  ours" "(given)"
  ARGS ${tiny} ${quick})
bench_case(NAME "half types, two shapes" OUT "6x6 3->8 3x3, batch 2, f16" "5x5 4->4 1x1, batch 3, bf16" "fwd   reference"
  ARGS ${tiny} --shape 3,4,5,5,4,1,1,1,0 ${quick} --precision fp16,bf16 --impl ours,reference --passes fwd --cache cold)
bench_case(NAME "a network" OUT "mnist_cnn 1: 28x28 1->32 3x3, batch 1, f32" "mnist_cnn 2-10: 28x28 32->32 3x3, batch 2"
  ARGS --layers mnist_cnn --batch 1,2 ${quick} --impl ours --cache hot)
bench_case(NAME "measures who is the fastest" OUT "chosen by measurement:" "direct" "winograd" ARGS ${tiny} ${quick}
  --impl ours --passes fwd --autotune)
bench_case(NAME "each family of the CPU by itself" OUT "fwd   family-direct" "bwd   family-winograd" ARGS ${tiny} ${quick}
  --impl family-direct,family-winograd)
bench_case(NAME "a family that does not take the layer" OUT "fwd   ours"
  ERR "note: left out: 5x5 4->4 1x1, batch 3, f32: family-winograd: the family does not take this layer in f32"
  ARGS --shape 3,4,5,5,4,1,1,1,0 ${quick} --impl ours,family-winograd)
bench_refuses(NAME "a GPU's family on the CPU" ERR "family-tile" ARGS ${tiny} --impl family-tile)
bench_case(NAME "measures the machine" OUT "measured: multiply-adds in registers"
  ARGS ${tiny} --groups 1 --impl ours --cache hot --passes fwd)
if(TANDEM_HAS_ONEDNN)
  bench_case(NAME "beside a library" OUT "fwd   onednn " "bwd   onednn-unfused" "geometric mean of ours over the best library"
    ARGS ${tiny} ${quick})
  bench_case(NAME "oneDNN has no half" OUT "fwd   ours"
    ERR "note: left out: 6x6 3->8 3x3, batch 2, f16: onednn: conv2d: oneDNN is called for f32 alone, not for f16"
    ARGS ${tiny} ${quick} --precision fp16 --impl ours,onednn)
else()
  bench_refuses(NAME "oneDNN in a build without it" ERR "--impl onednn: this build has no oneDNN"
    ARGS ${tiny} --impl onednn)
endif()

bench_refuses(NAME "nothing to time" ERR "nothing to time: give --layers" "--shape N,C,H,W" ARGS --groups 3)
bench_refuses(NAME "unknown network" ERR "--layers 'vgg_lit'" "did you mean 'vgg_lite'?" ARGS --layers vgg_lit)
bench_refuses(NAME "unknown implementation" ERR "--impl 'our'" "did you mean 'ours'?" ARGS ${tiny} --impl our)
bench_refuses(NAME "unknown pass" ERR "--passes 'forward': choose from fwd, dgrad, wgrad, bwd and both" ARGS ${tiny} --passes forward)
bench_refuses(NAME "implementation of another program" ERR "--impl 'auto': unknown implementation, did you mean 'ours'?; on cpu"
  "there are ours, fused, direct, winograd, autograd, reference" NOT_ERR "cudnn" "tf32" "warpgroup" ARGS ${tiny} --impl auto)
bench_refuses(NAME "unknown precision" ERR "--precision 'fp64': unknown precision" "choose from fp32, fp16, bf16"
  ARGS ${tiny} --precision fp64)
bench_refuses(NAME "precision by the name of a dtype" ERR "--precision 'f16': unknown precision, did you mean 'fp16'?"
  ARGS ${tiny} --precision f16)
bench_refuses(NAME "precision that is an implementation" ERR "--precision 'tf32'" "give --impl tf32" ARGS ${tiny} --precision tf32)
bench_refuses(NAME "unknown cache" ERR "--cache 'warm': choose from hot and cold" ARGS ${tiny} --cache warm)
bench_refuses(NAME "short shape" ERR "--shape '1,2,3': give nine whole numbers" ARGS --shape 1,2,3)
bench_refuses(NAME "kernel larger than the image" ERR "--shape '1,1,2,2,1,5,5,1,0'" "kernel spans 5"
  ARGS --shape 1,1,2,2,1,5,5,1,0)
bench_refuses(NAME "batch 0" ERR "--batch: 0 is not between 1 and 1048576" ARGS --layers vgg_lite --batch 0)
bench_refuses(NAME "batch in other digits" ERR "--batch: '0x10' is not a whole number" ARGS --layers vgg_lite --batch 0x10)
bench_case(NAME "leading zeros" OUT "batch 10, f32" ARGS --layers mnist_cnn --batch 010 ${quick} --impl ours --passes fwd --cache hot)
bench_refuses(NAME "flag with another value" ERR "--autotune = yes: a flag takes true or false" ARGS ${tiny} --autotune=yes)
bench_refuses(NAME "no groups" ERR "--groups: 0 is not between 1 and 1000" ARGS ${tiny} --groups 0)
bench_refuses(NAME "half a group" ERR "--groups: '1.5' is not a whole number" ARGS ${tiny} --groups 1.5)
bench_case(NAME "last value counts" OUT "1 groups in turns" ARGS ${tiny} ${quick} --groups 2 --groups 1 --impl ours)
bench_refuses(NAME "first layer of a network" ERR "--no-input-gradient is about a --shape"
  ARGS --layers vgg_lite --no-input-gradient)
bench_refuses(NAME "negative peak" ERR "--peak-flops: -1 must be at least 0" ARGS ${tiny} --peak-flops -1)
bench_refuses(NAME "endless peak" ERR "--peak-bandwidth: inf must be" ARGS ${tiny} --peak-bandwidth inf)
bench_refuses(NAME "unknown option" ERR "unknown option --layer: did you mean --layers?" ARGS --layer vgg_lite)
bench_refuses(NAME "name of another program" ERR "unknown option --dtype: here it is called --precision" ARGS ${tiny} --dtype f16)
string(ASCII 127 delete)
bench_refuses(NAME "character that deletes" ERR "error: 'vgg\\x7f': control characters are not taken" ARGS --layers "vgg${delete}")
bench_refuses(NAME "stray word" ERR "unexpected argument 'vgg_lite': options begin with --" ARGS vgg_lite)
bench_refuses(NAME "missing value" ERR "--json needs a value" ARGS ${tiny} --json)
bench_refuses(NAME "file for a server" ERR "--serve answers on stdout; leave --json out" ARGS ${tiny} --serve --json a.json)
bench_refuses(NAME "two reports in one file" ERR "--json and --svg are both a.out: name two files"
  ARGS ${tiny} --json a.out --svg a.out)
bench_refuses(NAME "unknown device" ERR "--device: unknown device 'gpu'" ARGS ${tiny} --device gpu)
bench_refuses(NAME "cuDNN on the CPU" ERR "--impl cudnn: needs a GPU" "on cpu there are ours, fused, direct, winograd, autograd, reference"
  NOT_ERR "auto," ARGS ${tiny} --impl cudnn)
bench_refuses(NAME "nobody who runs here" ERR "--impl cudnn: needs a GPU" "warpgroup: needs a GPU"
  ARGS ${tiny} --impl cudnn,warpgroup)
bench_case(NAME "a library that is not there" OUT "left out: cudnn: needs a GPU" "fwd   ours"
  ERR "note: left out: cudnn: " ARGS ${tiny} ${quick} --impl ours,cudnn)
if(NOT TANDEM_HAS_CUDA)
  bench_refuses(NAME "warpgroups in a build without CUDA" ERR "--impl warpgroup: needs a GPU, and this build has no CUDA"
    ARGS ${tiny} --impl warpgroup)
  bench_refuses(NAME "cuda in a build without it" ERR "--device cuda:0: this build has no CUDA" "TANDEM_CUDA=OFF" ARGS ${tiny} --device cuda)
endif()
bench_refuses(NAME "JSON to no folder" ERR "app_files/nowhere/a.json" "no directory"
  ARGS ${tiny} ${quick} --json app_files/nowhere/a.json)
bench_refuses(NAME "SVG to a directory" ERR "app_files/empty" "directory" ARGS ${tiny} ${quick} --svg app_files/empty)
if(NOT TANDEM_CUDA_IS_SIMULATED)
  bench_refuses(NAME "counting without a simulator" ERR "--count: this build counts nothing; the preset simulated does"
    ARGS ${tiny} --count)
endif()
