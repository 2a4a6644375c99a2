// The tape's entries. Internal to autograd/: everyone else records through record.h.
#pragma once

#include "tandem/autograd/record.h"

#include <memory>
#include <string>
#include <vector>

namespace tandem::autograd {

struct Node;

/// Where the gradient of an input goes: the node that made it and which of its outputs it was. No node: no gradient.
struct Edge {
  std::shared_ptr<Node> node;
  std::size_t output = 0;
};

/// What a gradient must be like.
struct OutputKind {
  Shape shape;
  DType dtype;
};

/// One recorded operation, or, with `leaf` defined, the end of the line where a gradient is added up.
struct Node {
  std::string name;
  std::string module;  // in whose forward it was recorded, by its dotted name (core/module_scope.h)
  std::vector<Edge> inputs;
  std::vector<OutputKind> outputs;
  BackwardFunction backward;  // empty at a leaf, and once its saved tensors are freed
  Tensor leaf;
  std::weak_ptr<Producer> producer;

  Node() = default;
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
};

/// What hangs off a tensor handle.
struct Meta final : AutogradMeta {
  Tensor grad;
  Tensor place;  // where backward() is to leave it; undefined: in memory of its own
  GradientCounts counts;
  std::vector<std::shared_ptr<const GradientHook>> hooks;
  std::vector<std::shared_ptr<const GradientHook>> final_hooks;  // called after all of `hooks`
  Edge made_by;                                                  // no node at a leaf
  std::weak_ptr<Node> leaf_node;                                 // one for all operations that use this leaf

  std::string_view operation() const override { return made_by.node ? std::string_view(made_by.node->name) : ""; }
};

/// Null for most tensors.
inline Meta* find_meta(const Tensor& tensor) { return static_cast<Meta*>(tensor.autograd_meta().get()); }

/// The edge that a gradient of `tensor` flows along; no node if it needs none.
Edge gradient_edge(const Tensor& tensor);

}  // namespace tandem::autograd
