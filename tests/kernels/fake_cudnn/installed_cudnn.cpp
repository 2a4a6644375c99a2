// The cuDNN that is installed, if one is.
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

#include <optional>

namespace tandem::test {

namespace k = tandem::kernels;

TEST_CASE("the installed cuDNN has all functions", "[conv][library]") {
  const LibraryRequest request = k::cudnn_library();
  std::optional<LibraryFile> file;
  try {
    file.emplace(request, library_files(request, environment_variable));
  } catch (const Error& error) {
    return skip_test(error.what());
  }
  CHECK(k::make_cudnn(*file) != nullptr);
  CHECK(file->version() >= request.least);
}

}  // namespace tandem::test
