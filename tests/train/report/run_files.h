// Run directories for tests: records as cifar_train writes them.
#pragma once

#include "tests/support/temporary_directory.h"

#include <fmt/format.h>

#include <string>

namespace tandem::test {

/// A run of so many epochs, as text of log.jsonl.
class RunFiles {
 public:
  /// `more`: of the configuration, `"log-norms":true,`
  explicit RunFiles(const std::string& dataset = "cifar10", int epochs = 10, int seed = 1, double lr = 0.1,
                    const std::string& more = "") {
    add(fmt::format(
        R"({{"record":"run","started":"2026-01-31T12:00:00Z","host":"h","world_size":2,"threads":1,"backend":"native",)"
        R"("device":"cpu","model":"small_cnn","model_parameters":1000,"dataset":"{}","train_images":500,)"
        R"("test_images":100,"global_batch_size":50,"steps_per_epoch":10,"versions":{{"tandem":"0.1.0"}},)"
        R"("config":{{{}"epochs":{},"lr":{},"seed":{}}},"without_effect":["log-norms","keep"]}})",
        dataset, more, epochs, lr, seed));
  }

  RunFiles& epoch(int number, double train_loss, double train_accuracy, double test_loss, double test_accuracy) {
    add(fmt::format(R"({{"record":"epoch","epoch":{},"lr":0.05,"train_loss":{},"train_accuracy":{},"test_loss":{},)"
                    R"("test_accuracy":{},"seconds":2.5,"images_per_second":200.0,"peak_memory_bytes":1048576,)"
                    R"("time":{{"data":0.1,"forward":0.9,"backward":1.2,"communication":0.3}}}})",
                    number, train_loss, train_accuracy, test_loss, test_accuracy));
    return *this;
  }

  RunFiles& result(int epoch) {
    add(fmt::format(R"({{"record":"result","epoch":{},"total_seconds":30.0,"peak_tensor_bytes":{{"data":4096}}}})",
                    epoch));
    return *this;
  }

  RunFiles& add(const std::string& line) {
    text_ += line + "\n";
    return *this;
  }

  const std::string& text() const { return text_; }

  void write(const TemporaryDirectory& folder) const { write_bytes(folder / "log.jsonl", text_); }

 private:
  std::string text_;
};

/// A run that fits well.
inline RunFiles four_epochs(const std::string& dataset = "cifar10", int seed = 1, double lr = 0.1,
                            double accuracy = 85.0, const std::string& more = "") {
  return RunFiles(dataset, 4, seed, lr, more)
      .epoch(1, 2.0, 30, 1.8, 35)
      .epoch(2, 1.5, 45, 1.4, 50)
      .epoch(3, 0.6, 84, 0.61, 83)
      .epoch(4, 0.59, 86, 0.60, accuracy);
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// evaluation.json of two classes of these names.
inline std::string evaluation_json(const std::string& first, const std::string& second) {
  return fmt::format(
      R"({{"split":"test","epoch":10,"images":100,"loss":0.4,"accuracy":90.0,"classes":["{0}","{1}"],)"
      R"("confusion":[[46,4],[6,44]],"per_class":[{{"class":"{0}","images":50,"accuracy":92.0}},)"
      R"({{"class":"{1}","images":50,"accuracy":88.0}}],"calibration":{{"ece":0.05,"bins":[{{"from":0.5,"to":1.0,)"
      R"("images":100,"confidence":0.95,"accuracy":0.9}}]}},"worst":[{{"index":7,"label":0,"predicted":1,)"
      R"("confidence":0.99,"loss":4.5,"png":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVQI12NgAAAAAgAB4iG8MwAAAABJRU5ErkJggg=="}}]}})",
      first, second);
}

}  // namespace tandem::test
