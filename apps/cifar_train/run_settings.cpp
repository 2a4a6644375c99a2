// Names, groups and help of options: of where a run takes place, and what it leaves.
#include "settings.h"

#include "tandem/comm/backends.h"
#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/transports/simulated/network_model.h"
#include "tandem/core/error.h"
#include "tandem/core/parse_device.h"
#include "tandem/train/best_by.h"

#include <fmt/format.h>

#include <string>

namespace tandem::apps {
namespace {

void describe_ranks(OptionTable& table, Settings& s) {
  table.group("Ranks and devices");
  std::string what;
  for (const comm::BackendEntry& entry : comm::backends())
    what += fmt::format("{}{}: {}{}", what.empty() ? "" : "; ", entry.name, entry.what,
                        entry.needs.empty() ? std::string() : fmt::format(" (needs {})", entry.needs));
  table.choice("backend", s.backend, comm::backend_names(), fmt::format("how ranks exchange gradients ({})", what));
  for (const comm::BackendEntry& entry : comm::backends())
    if (!entry.former_name.empty()) table.find("backend")->also_called(entry.former_name, entry.name);
  table.choice(
      "comm-algorithm", s.comm_algorithm, comm::algorithm_names(),
      "how backends native and threads add up (auto: shared-memory within a host, else by-cost, which takes "
      "what is predicted to be the fastest for each size, direct for 8 ranks at most; the others by messages)");
  table
      .choice("comm-progress", s.comm_progress, comm::progress_names(),
              "who moves on the sums of backends native, threads and mpi while a rank computes: its own polls between "
              "layers, or a thread as well (auto: a thread where each rank has a core for it to spare)")
      .no_effect_on_result();
  table
      .real("comm-timeout", s.comm_timeout, {.least = 0.0, .most = 1e9}, "SECONDS",
            "end the run, and name the rank that the others wait for, where one waits for longer (TANDEM_COMM_TIMEOUT, "
            "or 30); 0: wait for any time")
      .no_effect_on_result();
  table
      .flag("comm-checks", s.comm_checks,
            "ranks compare what they are about to do before each collective, and before messages between two ranks: "
            "slower, for finding faults of a program")
      .no_effect_on_result();
  table
      .parsed(
          "iface", s.interface, "NAME|ADDRESS|SUBNET",
          [](const std::string& text) {
            require(!text.empty(),
                    "it is empty; give a network interface's name, an address or a subnet, or leave it out");
            return text;
          },
          "the network that ranks of several hosts use (MPI's TCP, Gloo, NCCL): a network interface's name, an address "
          "in its network, or a subnet such as 10.0.0.0/24")
      .own_to_a_rank()
      .no_effect_on_result();
  table
      .flag(
          "tune-comm", s.tune_comm,
          "measure what messages between the ranks cost before training, for by-cost to choose by; results then differ "
          "in their last digits")
      .only_for("comm-algorithm", {"auto", std::string(comm::kByCost)});
  table
      .path(
          "comm-costs", s.comm_costs, "FILE",
          "choose by what --tune-comm measured before, kept in FILE; with --tune-comm, measure and add what it has not")
      .only_for("comm-algorithm", {"auto", std::string(comm::kByCost)});
  table.parsed(
      "simulate-network", s.network, "WORDS",
      [](const std::string& text) {
        comm::parse_network_model(text);
        return text;
      },
      "have the messages of backends native and threads arrive as late as on such a network, in real time: "
      "\"alpha=2ms beta=1Gbit hosts=2x2\" is 2 ms and 1 Gbit/s between 2 hosts of 2 ranks (without hosts each rank "
      "is on one; within hosts local-alpha, local-beta; jitter=1ms)");
  table.integer("replicas", s.replicas, {1, 64},
                "ranks that are threads of this process, in place of mpirun; on GPUs each has one of its own");
  table.real("bucket-mb", s.bucket_mb, {.least = 0.0, .most = 65536.0}, "MIB",
             "size of the buckets that gradients are exchanged in (the first one: at most 1); 0: by the size of the "
             "model, and by what messages cost");
  table
      .choice("allreduce-dtype", s.allreduce_dtype, {"auto", "fp32", "half"},
              "what gradients of half weights are exchanged in (auto: fp32)")
      .only_for("precision", {"fp16", "bf16"}, {"fp32"});
  table.flag("check-replicas", s.trainer.check_replicas, "after each epoch, check that all ranks hold the same weights")
      .no_effect_on_result();
  table.parsed(
      "device", s.device, "DEVICE",
      [](const std::string& text) {
        read_device(text);  // whether it is there is asked later, by every rank for itself
        return text;
      },
      "where to compute: auto (a GPU where there is one), cpu, cuda (ranks share out the GPUs of a host) or cuda:N");
  table
      .choice(
          "resident-data", s.resident_data, {"auto", "on", "off"},
          "keep the images on the GPU, which then makes the batches: as they are made on the CPU, bit for bit (auto: "
          "on a GPU, up to a quarter of its free memory)")
      .no_effect_on_result();
  table
      .parsed(
          "cuda-graph", s.trainer.cuda_graph, "auto|on|off", train::parse_cuda_graph,
          "have the GPU given each step as one CUDA graph, and each batch that is evaluated, with the same bits: steps "
          "without micro-batches, of several ranks over backend nccl (auto: what can be)")
      .no_effect_on_result();
  table
      .integer("rehearsal-steps", s.rehearsal_steps, {},
               "first take N steps and take them back: kernels are loaded and chosen then, and the run's first steps "
               "take no longer than the others; 0: none")
      .no_effect_on_result();
  table.integer("threads", s.threads, {0, 4096}, "threads per rank; 0: OMP_NUM_THREADS, or a fair share of the cores")
      .own_to_a_rank()
      .no_effect_on_result();
}

void describe_checkpoints(OptionTable& table, Settings& s) {
  table.group("Checkpoints");
  table
      .path("run-dir", s.run_dir_choice, "DIR",
            "keep the run there: settings, log, curves, checkpoints, weights, TensorBoard's events; default "
            "runs/DATE-MODEL-N, a new one; none or --no-run-dir: keep nothing")
      .off_by_no(kNoRunDirectory)
      .no_effect_on_result();
  table
      .parsed("checkpoint-every", s.checkpoint_every, "epoch|N|Ns", train::parse_checkpoint_interval,
              "write a checkpoint to the --run-dir at the end of each epoch, and also every N steps or N seconds")
      .useless_with("run-dir", {kNoRunDirectory})
      .no_effect_on_result();
  table.integer("keep", s.keep, {1}, "checkpoints to keep: the newest N, and the best")
      .useless_with("run-dir", {kNoRunDirectory})
      .no_effect_on_result();
  table
      .choice("best-by", s.best_by, {train::best_by_names().begin(), train::best_by_names().end()},
              "what makes an epoch, and its checkpoint, the best; default validation_accuracy with "
              "--validation-split, else test_accuracy",
              train::parse_best_by)
      .affects_result_if([&s] { return s.trainer.early_stopping.patience > 0; });
  table
      .path("resume", s.resume, "auto|DIR|FILE",
            "go on from the newest checkpoint in DIR (a run's folder, or a checkpoint), or the one of FILE; auto: from "
            "--run-dir, by default the newest below runs/ of this model that has not come to its end, or begin where "
            "there is none yet")
      .no_effect_on_result();
  table
      .choice("on-save-error", s.on_save_error, {"continue", "stop"},
              "what becomes of the run where a checkpoint, the log or TensorBoard's events cannot be written: continue "
              "and try again each time, or stop behind the step, with exit code 1")
      .no_effect_on_result();
  table
      .flag("find-nan", s.find_nan,
            "search for where NaN or Inf comes from: go on from the newest checkpoint of --resume or --run-dir with "
            "all tensors watched, until one is not finite, and write nothing; exit code 3 where one was found")
      .no_effect_on_result();
}

void describe_output(OptionTable& table, Settings& s) {
  table.group("Output");
  table
      .path("log", s.log, "FILE",
            "write run, epoch and result records there (JSON lines), after those of the runs before; the run directory "
            "has a log of its own")
      .own_to_a_rank()
      .no_effect_on_result();
  table
      .flag("log-norms", s.trainer.layer_norms,
            "also log the norms of each layer's gradient, update and weights, at each epoch's last step")
      .no_effect_on_result();
  table
      .flag("log-dead-relus", s.trainer.dead_relus,
            "also log how many channels of each ReLU gave 0 for every image, at each evaluation")
      .no_effect_on_result();
  table
      .integer("evaluate-every", s.trainer.evaluate_every, {1},
               "evaluate behind every N-th epoch, and behind the last one")
      .no_effect_on_result();
  table.flag("per-class", s.per_class, "tell the accuracy of each class at the end").no_effect_on_result();
  table.integer("log-every", s.trainer.log_every, {}, "also log the loss of every N-th step; 0: none")
      .no_effect_on_result();
  table
      .parsed(
          "profile", s.profile, "steps=A:B", train::parse_step_window,
          "where the time of steps A to B goes: a table, and a trace of all ranks for Perfetto, in the run directory")
      .no_effect_on_result();
  table
      .path("trace", s.trace, "FILE",
            "write a trace of all ranks there, for Perfetto, and beside it a picture of a step, as .html: of the steps "
            "of --profile, by default of five, from this run's third on")
      .no_effect_on_result();
  table.flag("histograms", s.histograms, "TensorBoard: weights and gradients at the end of each epoch")
      .no_effect_on_result();
  table.choice("progress", s.progress, {"auto", "bar", "plain", "none"}, "progress on standard error")
      .own_to_a_rank()
      .no_effect_on_result();
}

}  // namespace

void describe_run_options(OptionTable& table, Settings& settings) {
  describe_ranks(table, settings);
  describe_checkpoints(table, settings);
  describe_output(table, settings);
}

}  // namespace tandem::apps
