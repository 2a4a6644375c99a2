# Data, weight and log files that are missing, broken or of the wrong kind.
set(bad app_files)
bad_input(NAME "no data" ERR "mnist: no data directory found (tried datasets/mnist)" "tandem data mnist" "by --data"
  ARGS --dataset mnist)
bad_input(NAME "data directory missing" ERR "${bad}/nowhere: no such data directory" "tandem data" "by --data"
  ARGS --data ${bad}/nowhere)
bad_input(NAME "data directory is a file" ERR "${bad}/plain_file" "expected a data directory"
  ARGS --data ${bad}/plain_file)
bad_input(NAME "data directory is empty" ERR "${bad}/empty: no data_batch_1.bin here" ARGS --data ${bad}/empty)
bad_input(NAME "data file missing" ERR "data_batch_5.bin" ARGS --data ${bad}/cifar_missing)
bad_input(NAME "data file truncated" ERR "data_batch_3.bin" "30729900" ARGS --data ${bad}/cifar_truncated)
bad_input(NAME "data file oversized" ERR "test_batch.bin" "30730001" ARGS --data ${bad}/cifar_oversized)
bad_input(NAME "data file is a directory" ERR "data_batch_2.bin" "directory" ARGS --data ${bad}/cifar_directory)
bad_input(NAME "label out of range" ERR "data_batch_1.bin: record 7" "label 12" ARGS --data ${bad}/cifar_bad_label)
bad_input(NAME "wrong magic" ERR "wrong magic 0x00001234" ARGS --dataset mnist --data ${bad}/mnist_magic)
bad_input(NAME "IDX label out of range" ERR "label" "10" ARGS --dataset mnist --data ${bad}/mnist_label)
bad_input(NAME "IDX counts differ" ERR "19" "20" ARGS --dataset mnist --data ${bad}/mnist_counts)
bad_input(NAME "IDX truncated" ERR "train-images-idx3-ubyte" "truncated" ARGS --dataset mnist --data ${bad}/mnist_truncated)
bad_input(NAME "IDX oversized" ERR "train-images-idx3-ubyte" ARGS --dataset mnist --data ${bad}/mnist_oversized)
bad_input(NAME "IDX file is a directory" ERR "train-labels-idx1-ubyte" "directory"
  ARGS --dataset mnist --data ${bad}/mnist_directory)
bad_input(NAME "IDX is no gzip file" ERR "train-images-idx3-ubyte.gz" ARGS --dataset mnist --data ${bad}/mnist_gzip)
bad_input(NAME "images are not square" ERR "1x28x24" "square" ARGS --dataset mnist --data ${bad}/mnist_not_square)
bad_input(NAME "training and test images differ" ERR "1x28x28" "1x24x24"
  ARGS --dataset mnist --data ${bad}/mnist_two_sizes)
bad_input(NAME "CIFAR-100 truncated" ERR "train.bin" "truncated" ARGS --dataset cifar100 --data ${bad}/cifar100_truncated)
app_case(NAME "data broken on one rank" RANKS 2 EXIT 2 ERR "rank 1:" "nowhere"
  ARGS --dataset mnist --data ${bad}/mnist_label : --dataset mnist --data ${bad}/nowhere)

set(synthetic --dataset synthetic --limit-train 16 --limit-test 16 --epochs 1)
bad_input(NAME "weights missing" ERR "${bad}/none.safetensors" ARGS ${synthetic} --load-weights ${bad}/none.safetensors)
bad_input(NAME "weights are a directory" ERR "${bad}/empty" "directory" ARGS ${synthetic} --load-weights ${bad}/empty)
bad_input(NAME "weights of another net" ERR "other_net.safetensors" "features.0.weight"
  ARGS ${synthetic} --load-weights ${bad}/other_net.safetensors)
bad_input(NAME "weights of another model" ERR "--load-weights ${bad}/named.safetensors: holds weights of the model vgg_lite, not of small_cnn"
  "choose model vgg_lite" ARGS ${synthetic} --load-weights ${bad}/named.safetensors)
bad_input(NAME "weights with strange names" ERR "two\\nlines"
  ARGS ${synthetic} --load-weights ${bad}/strange_names.safetensors)
app_case(NAME "weights broken on one rank" RANKS 2 EXIT 2 ERR "rank 1:" "truncated.safetensors"
  ARGS ${synthetic} : ${synthetic} --load-weights ${bad}/truncated.safetensors)
foreach(kind truncated oversized no_json garbage tiny)
  bad_input(NAME "weights ${kind}" ERR "${kind}.safetensors"
    ARGS ${synthetic} --load-weights ${bad}/${kind}.safetensors)
endforeach()

bad_input(NAME "log in no folder" ERR "${bad}/nowhere/run.jsonl" "No such file"
  ARGS ${synthetic} --log ${bad}/nowhere/run.jsonl)
bad_input(NAME "log is a directory" ERR "${bad}/empty" "directory" ARGS ${synthetic} --log ${bad}/empty)
bad_input(NAME "log in a file of something else" ERR "${bad}/notes.txt: holds something else than the log of a run"
  ARGS ${synthetic} --log ${bad}/notes.txt)
if(EXISTS /dev/full)
  bad_input(NAME "log on a full disk" ERR "/dev/full" "No space left" ARGS ${synthetic} --log /dev/full)
endif()
bad_input(NAME "a trace to no folder" ERR "--trace ${bad}/nowhere/t.json" "no directory" ARGS ${synthetic} --trace ${bad}/nowhere/t.json)
bad_input(NAME "weights to no folder" ERR "--save-weights ${bad}/nowhere/w.safetensors" "no directory"
  ARGS ${synthetic} --save-weights ${bad}/nowhere/w.safetensors)
bad_input(NAME "weights to a folder that is not there" ERR "--save-weights ${bad}/nowhere/: cannot write" "no directory ${bad}/nowhere"
  ARGS ${synthetic} --save-weights ${bad}/nowhere/)
bad_input(NAME "weights to a folder, with a slash" ERR "--save-weights ${bad}/empty/: cannot write: it is a directory"
  ARGS ${synthetic} --save-weights ${bad}/empty/)
bad_input(NAME "weights to a device" ERR "--save-weights /dev/null" "not a regular file"
  ARGS ${synthetic} --save-weights /dev/null)
bad_input(NAME "weights to a directory" ERR "--save-weights ${bad}/empty" "directory"
  ARGS ${synthetic} --save-weights ${bad}/empty)
