// The rewriting itself: one pass over the text, aware of comments, literals and brackets.
#include "tandem/simulator/translate/translate.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tandem::simulator {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

class Translator {
 public:
  Translator(std::string_view source, std::string_view file) : source_(source), file_(file) {}

  std::string run() {
    while (at_ < source_.size()) {
      if (copy_comment_or_literal()) continue;
      if (source_.substr(at_, 3) == "<<<") {
        launch();
      } else if (is_word(source_[at_])) {
        word();
      } else {
        out_ += source_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const auto line = 1 + std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw std::runtime_error(std::string(file_) + ":" + std::to_string(line) + ": " + what);
  }

  /// Where a comment or literal that starts here ends; `from` if none does.
  std::size_t end_of_comment_or_literal(std::size_t from) const {
    const std::string_view rest = source_.substr(from);
    if (rest.starts_with("//")) return std::min(source_.find('\n', from), source_.size());
    if (rest.starts_with("/*")) return std::min(source_.find("*/", from + 2), source_.size() - 2) + 2;
    if (rest.starts_with("R\"")) {
      const std::size_t open = source_.find('(', from);
      if (open == std::string_view::npos) return source_.size();
      const std::string close = ")" + std::string(source_.substr(from + 2, open - from - 2)) + "\"";
      return std::min(source_.find(close, open), source_.size() - close.size()) + close.size();
    }
    const char quote = rest.front();
    // A quote within a number separates its digits.
    if (quote != '"' && (quote != '\'' || (from > 0 && is_word(source_[from - 1])))) return from;
    std::size_t end = from + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    return std::min(end + 1, source_.size());
  }

  bool copy_comment_or_literal() {
    const std::size_t end = end_of_comment_or_literal(at_);
    if (end == at_) return false;
    out_ += source_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  /// Moves to the first of `text` outside of brackets and literals and returns what lies before; the text is passed,
  /// too.
  std::string take_until(std::string_view text) {
    const std::size_t start = at_;
    int depth = 0;
    while (at_ < source_.size()) {
      if (depth == 0 && source_.substr(at_).starts_with(text)) {
        std::string taken(source_.substr(start, at_ - start));
        at_ += text.size();
        return taken;
      }
      if (const std::size_t end = end_of_comment_or_literal(at_); end != at_) {
        at_ = end;
        continue;
      }
      const char c = source_[at_++];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
    }
    at_ = start;
    refuse("'" + std::string(text) + "' is missing");
  }

  /// kernel<<<...>>> : the kernel is the name before, with its template arguments, already written out.
  void launch() {
    std::size_t start = out_.size();
    while (start > 0 && is_space(out_[start - 1])) --start;
    const std::size_t end = start;
    if (start > 0 && out_[start - 1] == '>') {
      int depth = 0;
      do {
        --start;
        depth += out_[start] == '>' ? 1 : out_[start] == '<' ? -1 : 0;
      } while (start > 0 && depth > 0);
    }
    while (start > 0 && (is_word(out_[start - 1]) || out_[start - 1] == ':')) --start;
    const std::string kernel = out_.substr(start, end - start);
    if (kernel.empty()) refuse("no kernel before <<<");
    at_ += 3;
    const std::string configuration = take_until(">>>");
    out_.erase(start);
    out_ += "::tandem::simulator::configure(" + kernel + ", " + configuration + ")";
  }

  void word() {
    std::size_t end = at_;
    while (end < source_.size() && is_word(source_[end])) ++end;
    const std::string_view name = source_.substr(at_, end - at_);
    if (name != "__shared__") {
      out_ += name;
      at_ = end;
      return;
    }
    at_ = end;
    shared_declaration();
  }

  void shared_declaration() {
    // `extern` may stand before; it goes.
    std::size_t before = out_.size();
    while (before > 0 && is_space(out_[before - 1])) --before;
    const bool dynamic = before >= 6 && out_.compare(before - 6, 6, "extern") == 0;
    if (dynamic) out_.erase(before - 6, 6);
    const std::string declaration = take_until(";");
    for (const std::string& one : declarators(declaration)) out_ += one_variable(one, dynamic);
    out_ += std::string(static_cast<std::size_t>(std::count(declaration.begin(), declaration.end(), '\n')), '\n');
  }

  /// "float a[4], b" as "float a[4]" and "float b".
  std::vector<std::string> declarators(const std::string& declaration) const {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (const char c : declaration) {
      depth += c == '<' || c == '[' || c == '(' ? 1 : c == '>' || c == ']' || c == ')' ? -1 : 0;
      if (c == ',' && depth == 0)
        parts.emplace_back();
      else
        parts.back() += c;
    }
    const std::string first = trimmed(parts.front());
    std::size_t name = std::min(first.find('['), first.size());
    while (name > 0 && is_space(first[name - 1])) --name;
    while (name > 0 && is_word(first[name - 1])) --name;
    for (std::size_t i = 1; i < parts.size(); ++i) parts[i] = first.substr(0, name) + trimmed(parts[i]);
    return parts;
  }

  std::string one_variable(const std::string& text, bool dynamic) const {
    std::string declaration = trimmed(text);
    if (const std::size_t align = declaration.find("__align__"); align != std::string::npos)
      declaration = trimmed(declaration.substr(0, align) + declaration.substr(declaration.find(')', align) + 1));
    if (declaration.find('=') != std::string::npos)
      refuse("shared memory cannot be initialised: '" + declaration + "'");
    const std::size_t dims = std::min(declaration.find('['), declaration.size());
    std::size_t name_end = dims;
    while (name_end > 0 && is_space(declaration[name_end - 1])) --name_end;
    std::size_t name = name_end;
    while (name > 0 && is_word(declaration[name - 1])) --name;
    const std::string type = trimmed(declaration.substr(0, name)), variable = declaration.substr(name, name_end - name);
    if (type.empty() || variable.empty()) refuse("cannot read the shared declaration '" + declaration + "'");
    if (dynamic) return "TANDEM_DYNAMIC_SHARED(" + type + ", " + variable + ");";
    if (type.find(',') != std::string::npos)
      refuse("give the type of '" + variable + "' a name without commas (using)");
    return "TANDEM_SHARED(" + type + ", " + variable + ", " + declaration.substr(dims) + ");";
  }

  std::string_view source_, file_;
  std::string out_;
  std::size_t at_ = 0;
};

}  // namespace

std::string translate_cuda(std::string_view source, std::string_view file) {
  // One line of our own, then the original's numbers.
  return "#include \"tandem/kernels/device/shared.h\"\n#line 1 \"" + std::string(file) + "\"\n" +
         Translator(source, file).run();
}

}  // namespace tandem::simulator
