// Recordings of the op table: the bits that a device computed, in a file, and the comparison of another device with
// them.
//
// A file is JSON, one call a line: {"format": "tandem op table", "version": 1, "recorded_by": {"device": ..., ...},
// "calls":
// [{"name": ..., "inputs": hash, "results": [bits, ...]}, ...]}. Bits are those of the elements in row-major order,
// each as hexadecimal digits, 4 for a half and 8 for an f32; results are the output and the gradients of golden_run.h's
// results_of.
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/tensor.h"

#include <map>
#include <string>
#include <vector>

namespace tandem::test {

struct RecordedCall {
  std::string name = {};
  std::string inputs = {};                // hash of the inputs, so that other inputs are not taken for a wrong result
  std::vector<std::string> results = {};  // empty where there is no gradient
};

struct Recording {
  std::map<std::string, std::string> recorded_by = {};  // device, versions, date, command
  std::vector<RecordedCall> calls = {};
};

/// Runs the table, or the cases named in `ops`, on `device`.
Recording record_op_table(Device device, const std::vector<std::string>& ops = {});

/// What `device` computes otherwise: one line per result, which names call, result and first element. Integers must
/// agree to the bit; fractions must lie within the derived bounds of both devices. Throws Error where the
/// recording does not fit the table: calls that it has not (any more), or other inputs. Calls of the table that were
/// not recorded are passed over.
std::vector<std::string> replay(const Recording& recording, Device device);

/// Throws Error, which begins with the path, where the file cannot be written or read, or is no recording of this
/// version.
void write_recording(const std::string& path, const Recording& recording);
Recording read_recording(const std::string& path);

/// The elements of a dense row-major CPU tensor as hexadecimal digits, and back.
std::string to_bits(const Tensor& tensor);
Tensor from_bits(const std::string& bits, DType dtype, const Shape& shape);

}  // namespace tandem::test
