// What a capture has put into a graph, for tests to read.
#pragma once

#include "tandem/simulator/include/cuda_runtime_api.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tandem::simulator {

/// A piece of work in a graph.
struct GraphNode {
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  std::string name{};    // the kernel's, or that of the call: "cudaMemsetAsync"
  dim3 grid{}, block{};  // of a kernel
  std::size_t shared_bytes = 0;
  /// Of a kernel: its arguments one after another, what lies between their members as zeros. Of other work: addresses,
  /// value and number of bytes, each as 8 bytes.
  std::vector<std::byte> arguments{};
  std::vector<std::size_t> dependencies{};  // places of the nodes that it waits for, ascending
  std::size_t stream = 0;  // 0 for the one whose capture it was, the others in the order they joined it

  friend bool operator==(const GraphNode& a, const GraphNode& b);
};

/// The nodes in the order of the calls that they stand for.
std::vector<GraphNode> nodes_of(cudaGraph_t graph);
std::vector<GraphNode> nodes_of(cudaGraphExec_t executable);

/// Lets a node wait for another one no more, by the places of both: for tests of what the dependency is for.
void drop_dependency(cudaGraphExec_t executable, std::size_t node, std::size_t dependency);

/// Waits for all work, and lets `bytes` bytes of one allocation of the device, or of host memory, be `value`. Memory of
/// the device then counts as never written. What still reads there gets other bits, or is a fault.
void overwrite_memory(void* start, std::size_t bytes, unsigned char value = 0xff);
/// The same for all memory of cudaMallocHost.
void overwrite_pinned_memory(unsigned char value = 0xff);

}  // namespace tandem::simulator
