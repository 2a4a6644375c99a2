// A tensor with autograd's metadata for check_gdb.py, of a type that gdb does not know: its file is compiled without
// -g, as libraries are.
#pragma once

#include "tandem/core/tensor.h"

void make_leaf(const tandem::Tensor& tensor, bool requires_grad);
