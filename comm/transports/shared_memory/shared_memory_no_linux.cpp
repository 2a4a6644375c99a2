// Systems where processes of one host exchange messages only.
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/error.h"

namespace tandem::comm {

SharedMemory::~SharedMemory() = default;
std::shared_ptr<SharedMemory> SharedMemory::create(std::int64_t /*bytes*/, ByteRange /*own*/, const char* /*name*/) {
  fail("shared memory: this program can do that on Linux only");
}
std::string SharedMemory::handle() const { return ""; }
std::shared_ptr<SharedMemory> SharedMemory::open(const std::string& /*handle*/, ByteRange /*own*/,
                                                 bool /*keeps_file*/) {
  fail("shared memory: this program can do that on Linux only");
}
void SharedMemory::seal() {}

}  // namespace tandem::comm
