// What a report reads, of any bytes: a run's page is made of it, and holds nothing that a browser would run.
//
// The first byte chooses the file that the others are: log.jsonl, evaluation.json, config.toml or environment.json.
// Beside it lies a log of one epoch, unless it is the log itself, or the settings, which are read only where there is
// no log.
#include "tandem/core/error.h"
#include "tandem/train/curves_file.h"
#include "tandem/train/environment_file.h"
#include "tandem/train/report/comparison.h"
#include "tandem/train/report/run_data.h"
#include "tests/fuzz/input_file.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kNames{"log.jsonl", "evaluation.json", "config.toml", "environment.json"};
constexpr std::string_view kLog =
    "{\"record\":\"run\",\"model\":\"small_cnn\",\"config\":{\"epochs\":1}}\n"
    "{\"record\":\"epoch\",\"epoch\":1,\"train_loss\":2.3,\"train_accuracy\":10,\"test_loss\":2.2,\"test_accuracy\":12}"
    "\n";

/// A folder of this process, in memory where there is such a place.
class RunFolder {
 public:
  RunFolder() {
    std::error_code unknown;
    const fs::path parent = fs::is_directory("/dev/shm", unknown) ? "/dev/shm" : fs::temp_directory_path();
    std::string pattern = (parent / "tandem-fuzz-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const RunFolder folder;
  if (size == 0) return 0;
  const std::string_view name = kNames[data[0] % kNames.size()];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::error_code none;
  for (const std::string_view file : kNames) fs::remove(folder.file(file), none);
  if (name != "config.toml") write(folder.file("log.jsonl"), kLog);
  write(folder.file(name), bytes);
  try {
    const auto run = tandem::train::report::read_run(folder.path());
    const std::string page = tandem::train::report::report_page(run);
    tandem::fuzz::expect(page.find("<script") == page.npos && page.ends_with("</html>\n"));
    if (name == "log.jsonl") tandem::train::write_curves(folder.file(name), folder.file("curves.csv"));
  } catch (const tandem::Error&) {  // refused
  }
  tandem::train::read_run_status(folder.file(name));
  return 0;
}
