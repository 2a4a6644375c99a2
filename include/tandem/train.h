// train/: the training loop, metrics, logs.
// Example:
//     Metrics metrics;
//     metrics.add(0.5, 3, 4);  // of 4 images 3 right
//     const double accuracy = metrics.accuracy();  // 75
#pragma once

#include "tandem/train/batch_loss.h"
#include "tandem/train/checkpoint/checkpoint.h"
#include "tandem/train/checkpoint/checkpoint_writer.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/config_value.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/forward.h"
#include "tandem/train/jsonl_log.h"
#include "tandem/train/metrics.h"
#include "tandem/train/process_info.h"
#include "tandem/train/records.h"
#include "tandem/train/report/report.h"
#include "tandem/train/reporter.h"
#include "tandem/train/scoring.h"
#include "tandem/train/stop_signals.h"
#include "tandem/train/trainer.h"
#include "tandem/train/tuning_file.h"
#include "tandem/train/weights.h"
