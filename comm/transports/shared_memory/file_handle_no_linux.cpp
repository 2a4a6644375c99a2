// Systems where processes share no files of memory.
#include "tandem/comm/transports/shared_memory/file_handle.h"
#include "tandem/core/error.h"

namespace tandem::comm {

OwnedFile::~OwnedFile() = default;
std::string handle_of_file(int /*file*/) { return ""; }
FileHandle parse_file_handle(const std::string& /*text*/) {
  fail("shared memory: this program can do that on Linux only");
}
OwnedFile open_file(const FileHandle& /*handle*/) { fail("shared memory: this program can do that on Linux only"); }

}  // namespace tandem::comm
