// Systems where processes see no blocks of each other.
#include "tandem/core/page_file.h"

#include "tandem/core/error.h"

namespace tandem {

PageFile::PageFile() { fail("blocks that others can map: on Linux only"); }
PageFile::~PageFile() = default;
PageFile::Mapped PageFile::map(std::int64_t /*bytes*/, std::int64_t /*alignment*/) noexcept { return {}; }
void PageFile::give_back(FileRange /*range*/) noexcept {}
void PageFile::keep_from_parent(std::byte* /*start*/, FileRange /*range*/) const noexcept {}

}  // namespace tandem
