// Elements and their ends.
#include "tandem/train/report/html_writer.h"

#include "tandem/core/error.h"
#include "tandem/train/plot/markup.h"

namespace tandem::train::report {

void HtmlWriter::begin(std::string_view name, Attributes attributes) {
  page_ += '<';
  page_ += name;
  for (const auto& [key, value] : attributes) page_ += fmt::format(" {}=\"{}\"", key, plot::escaped(value));
  page_ += '>';
}

void HtmlWriter::open(std::string_view name, Attributes attributes) {
  begin(name, attributes);
  open_.emplace_back(name);
}

void HtmlWriter::close() {
  require(!open_.empty(), "HtmlWriter: no element is open");
  page_ += fmt::format("</{}>\n", open_.back());
  open_.pop_back();
}

void HtmlWriter::text(std::string_view text) { page_ += plot::escaped(text); }

void HtmlWriter::element(std::string_view name, std::string_view text, Attributes attributes) {
  open(name, attributes);
  this->text(text);
  close();
}

void HtmlWriter::empty_element(std::string_view name, Attributes attributes) {
  begin(name, attributes);
  page_ += '\n';
}

std::string HtmlWriter::take() {
  require(open_.empty(), "HtmlWriter: element {} was not closed", open_.empty() ? "" : open_.back());
  return std::move(page_);
}

}  // namespace tandem::train::report
