// comm/: process groups, and data-parallel training on several ranks.
// Example:
//     MpiEnvironment environment;
//     const auto group = make_process_group("auto", environment);
//     const Tensor x = Tensor::full({}, 1.0);
//     group->all_reduce(Out(x));
//     const double ranks = x.item();  // 1: started alone
#pragma once

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/clock_offsets.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/correction.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/cost/speed_up.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/ddp/exchange_totals.h"
#include "tandem/comm/ddp/micro_batch_sum.h"
#include "tandem/comm/launch/gpu_sharing.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/launch/launch.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/launch/network_interface.h"
#include "tandem/comm/launch/run_thread_ranks.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/comm/long_work.h"
#include "tandem/comm/process_group.h"
#include "tandem/comm/work.h"
