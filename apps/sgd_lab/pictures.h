// The pictures of a lesson as files.
#pragma once

#include "apps/sgd_lab/lesson.h"
#include "tandem/layers/file.h"

#include <memory>
#include <string>
#include <vector>

namespace tandem::sgd_lab {

/// SVG files in a folder, which are opened at once: what cannot be written is told before any work.
class PictureFiles {
 public:
  /// Throws Error where there is no such folder, where it cannot be written to, and where no chapter has a picture.
  PictureFiles(const std::string& folder, const LabOptions& options);

  void write(const Lesson& lesson);
  /// Their names, without the folder.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<layers::AtomicFile>> files_;
};

}  // namespace tandem::sgd_lab
