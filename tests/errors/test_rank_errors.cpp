// What users read of process groups, of replicas, and of files of weights.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/layers/safetensors.h"
#include "tests/errors/bad_calls.h"
#include "tests/support/temporary_directory.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

ProcessGroup alone() { return ProcessGroup(make_self_backend()); }

}  // namespace

TEST_CASE("errors of process groups read as recorded", "[errors]") {
  const Tensor gaps = Tensor::zeros({4}).narrow(0, 0, 2, 2), integers = Tensor::zeros({2}, {.dtype = DType::i64});
  const Tensor w = autograd::set_requires_grad(Tensor::zeros({2}));
  check_errors("process_groups",
               {
                   {"make_process_group, an unknown backend",
                    [] {
                      MpiEnvironment environment;
                      make_process_group("natvie", environment);
                    }},
                   {"all_reduce, an undefined tensor", [] { alone().all_reduce(Out(Tensor())); }},
                   {"all_reduce, gaps", [&] { alone().all_reduce(Out(gaps)); }},
                   {"all_reduce, bytes", [] { alone().all_reduce(Out(Tensor::zeros({2}, {.dtype = DType::u8}))); }},
                   {"all_reduce, the mean of integers", [&] { alone().all_reduce(Out(integers), ReduceOp::average); }},
                   {"all_reduce, a leaf", [&] { alone().all_reduce(Out(w)); }},
                   {"broadcast, no such root", [&] { alone().broadcast(Out(integers), 1); }},
                   {"all_gather, an undefined tensor", [] { alone().all_gather(Tensor()); }},
                   {"all_gather, a leaf", [&] { alone().all_gather(w); }},
                   {"all_gather, many dimensions", [] { alone().all_gather(Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1})); }},
                   {"DistributedDataParallel, a weight below 0",
                    [&] {
                      ProcessGroup group = alone();
                      DistributedDataParallel(group, {{"w", w}}, {}).set_gradient_weight(-1.0);
                    }},
                   {"DistributedDataParallel, an undefined parameter",
                    [] {
                      ProcessGroup group = alone();
                      DistributedDataParallel(group, {{"w", Tensor()}}, {});
                    }},
                   {"DistributedDataParallel, a bucket of -1 bytes",
                    [&] {
                      ProcessGroup group = alone();
                      DistributedDataParallel(group, {{"w", w}}, {}, {.bucket_bytes = -1});
                    }},
               });
}

TEST_CASE("errors of files of weights read as recorded", "[errors]") {
  const TemporaryDirectory folder;
  const Tensor w = Tensor::zeros({2, 3});
  const std::string path = folder / "model.safetensors";
  const auto reads = [&](const std::string& bytes) {
    return [=] {
      write_bytes(path, bytes);
      layers::read_safetensors(path);
    };
  };
  /// A file with this header and so many bytes of data.
  const auto with_header = [](const std::string& json, std::size_t data) {
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> 8 * i & 0xff);
    return bytes + json + std::string(data, '\0');
  };
  check_errors(
      "safetensors",
      {
          {"write, no such folder", [&] { layers::write_safetensors(folder / "none/model.safetensors", {{"w", w}}); }},
          {"write, a folder", [&] { layers::write_safetensors(folder.path().string(), {{"w", w}}); }},
          {"write, no name", [&] { layers::write_safetensors("", {{"w", w}}); }},
          {"write, an undefined tensor", [&] { layers::write_safetensors(path, {{"w", Tensor()}}); }},
          {"write, a name twice", [&] { layers::write_safetensors(path, {{"w", w}, {"w", w}}); }},
          {"write, a reserved name", [&] { layers::write_safetensors(path, {{"__metadata__", w}}); }},
          {"write, bytes that are no text", [&] { layers::write_safetensors(path, {{"\xff", w}}); }},
          {"read, nothing there", [&] { layers::read_safetensors(folder / "none.safetensors"); }},
          {"read, a folder", [&] { layers::read_safetensors(folder.path().string()); }},
          {"read, an empty file", reads("")},
          {"read, a text", reads("# weights of my network\n")},
          {"read, a cut header", reads(with_header("{", 0).substr(0, 8) + "")},
          {"read, no object", reads(with_header("[]", 0))},
          {"read, a dtype that is not known",
           reads(with_header(R"({"w":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", 2))},
          {"read, no shape", reads(with_header(R"({"w":{"dtype":"F32","data_offsets":[0,8]}})", 8))},
          {"read, other sizes", reads(with_header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4))},
          {"read, cut data", reads(with_header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7))},
          {"read, more data", reads(with_header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9))},
      },
      folder.path().string());
}
