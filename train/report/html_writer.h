// HTML, element by element; all text and all values of attributes are escaped here and nowhere else.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::train::report {

using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

class HtmlWriter {
 public:
  /// Begins an element; the one that was begun last is ended by close(). `name` is this program's, not a file's.
  void open(std::string_view name, Attributes attributes = {});
  void close();
  void text(std::string_view text);

  /// An element with nothing but text; one that has no end, such as img, where there is no text.
  void element(std::string_view name, std::string_view text, Attributes attributes = {});
  void empty_element(std::string_view name, Attributes attributes);

  /// Markup of this library: a picture by svg_picture(), or the page's style.
  void markup(std::string_view trusted) { page_ += trusted; }

  /// The page; all elements must have been closed.
  std::string take();

 private:
  void begin(std::string_view name, Attributes attributes);

  std::string page_ = "<!DOCTYPE html>\n";
  std::vector<std::string> open_;
};

}  // namespace tandem::train::report
