#pragma once
// Reads the narrow JSON of safetensors headers and index files out of a buffer, in place.
//
// Why not a JSON library: a header needs objects of known depth, strings and whole numbers, nothing
// else. A general parser builds a tree several times the size of the text, silently keeps the last
// of two equal keys, turns 2^64-1 or -1 into another number and reports positions in a text that
// nobody sees. These lines allocate nothing, recurse nowhere without a bound, and know the byte of
// the file that they stand on. They also keep the library free of dependencies where it is used as
// plain headers.
//
// Strings are unescaped in place (an escape is never shorter than what it stands for) and returned
// as views into the buffer, which therefore has to outlive them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dtm/io/readable_file.hpp"

namespace dtm::io::detail {

/// Position of the first byte that is not well-formed UTF-8, or -1.
inline std::int64_t first_invalid_utf8(std::string_view text) {
  auto const byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  auto const continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  for (std::size_t i = 0; i < text.size();) {
    unsigned const lead = byte(i);
    std::size_t length = 0;
    if (lead < 0x80)
      length = 1;
    else if (lead >= 0xc2 && lead <= 0xdf && continues(i + 1))
      length = 2;
    else if (lead >= 0xe0 && lead <= 0xef && continues(i + 2) &&
             continues(i + 1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf))
      length = 3;
    else if (lead >= 0xf0 && lead <= 0xf4 && continues(i + 2) && continues(i + 3) &&
             continues(i + 1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf))
      length = 4;
    if (length == 0) return static_cast<std::int64_t>(i);
    i += length;
  }
  return -1;
}

class json_scanner {
 public:
  /// `noun` says what the text is ("header", "index"), `first_byte` its place in the file. Refuses
  /// text that is not UTF-8 or does not start with `{`.
  json_scanner(std::string_view path, std::string const& noun, std::span<char> text,
               std::int64_t first_byte)
      : path_(path),
        begin_(text.data()),
        next_(text.data()),
        end_(text.data() + text.size()),
        first_byte_(first_byte),
        syntax_(noun + " syntax") {
    if (text.empty() || text[0] != '{') fail(syntax_ + ": must start with '{', found " + found());
    if (std::int64_t const bad = first_invalid_utf8({text.data(), text.size()}); bad >= 0)
      fail_at(begin_ + bad, syntax_ + ": not UTF-8 from this byte on");
  }

  /// What the following values belong to, named in messages: "tensor 'x'". Must outlive its use.
  void set_subject(std::string_view subject) { subject_ = subject; }

  [[noreturn]] void fail(std::string const& text) const { fail_at(next_, text); }
  [[noreturn]] void fail_at(char const* place, std::string const& text) const {
    std::string position = "byte " + std::to_string(first_byte_ + (place - begin_));
    if (!subject_.empty()) position.append(", ").append(subject_);
    refuse_file(path_, position, text);
  }

  /// Takes `c` (after blanks) if it comes next.
  bool accept(char c) {
    skip_blanks();
    if (next_ == end_ || *next_ != c) return false;
    ++next_;
    return true;
  }

  /// Takes `c` or refuses; `what` names the kind of fault and the place: "shape: after an extent".
  void expect(char c, std::string_view what) {
    if (!accept(c))
      fail(std::string(what) + ": expected '" + c + "', found " + found() + nesting());
  }

  /// After a member or element: true when another follows, false when `close` ends the list.
  bool another(char close, std::string_view what) {
    if (accept(close)) return false;
    if (!accept(','))
      fail(std::string(what) + ": expected ',' or '" + close + "', found " + found() + nesting());
    return true;
  }

  /// The next string. `what` names the kind of fault: "dtype: the type".
  std::string_view string(std::string_view what) {
    skip_blanks();
    if (next_ == end_ || *next_ != '"')
      fail(std::string(what) + " must be a string, found " + found() + nesting());
    char* const start = ++next_;
    char* out = start;
    while (true) {
      if (next_ == end_) fail_at(start, syntax_ + ": a string starts here and does not end");
      unsigned char const c = static_cast<unsigned char>(*next_);
      if (c == '"') break;
      if (c < 0x20) fail(syntax_ + ": control character in a string, found " + found());
      if (c == '\\')
        out = unescape(out);
      else
        *out++ = *next_++;
    }
    ++next_;
    return {start, static_cast<std::size_t>(out - start)};
  }

  /// The next value, which must be a whole number in [0, 2^63). `what` as above: "shape: an
  /// extent".
  std::int64_t whole_number(std::string_view what) {
    skip_blanks();
    char const* const start = next_;
    while (next_ != end_ &&
           std::string_view("0123456789+-.eE").find(*next_) != std::string_view::npos)
      ++next_;
    std::string_view const token(start, static_cast<std::size_t>(next_ - start));
    std::string const kind(what);
    if (token.empty()) fail(kind + " must be a whole number, found " + found() + nesting());
    if (token.find_first_of(".eE") != std::string_view::npos)
      fail_at(start, kind + " is " + quoted(token) + ", must be a whole number written in digits");
    if (token[0] == '-') fail_at(start, kind + " is negative: " + quoted(token));
    if (token.find_first_of("+-") != std::string_view::npos ||
        (token[0] == '0' && token.size() > 1))
      fail_at(start, syntax_ + ": " + quoted(token) + " is not a number in JSON");
    std::int64_t value = 0;
    for (char c : token)
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{c - '0'}, &value))
        fail_at(start, kind + " is " + quoted(token) + ", must be below 2^63");
    return value;
  }

  /// Passes over any value nested at most `depth` deep.
  void skip_value(int depth) {
    skip_blanks();
    if (next_ == end_) fail(syntax_ + ": expected a value, found " + found());
    if (*next_ == '"') return void(string(syntax_ + ": a value"));
    if (*next_ == '{' || *next_ == '[') {
      if (depth == 0) fail(syntax_ + ": nested too deeply; this format has no deeper nesting");
      bool const object = *next_++ == '{';
      char const close = object ? '}' : ']';
      if (accept(close)) return;
      do {
        if (object) {
          string(syntax_ + ": a key");
          expect(':', syntax_ + ": after a key");
        }
        skip_value(depth - 1);
      } while (another(close, syntax_ + ": after a value"));
      return;
    }
    char const* const start = next_;
    while (next_ != end_ &&
           std::string_view(",]} \t\r\n:\"{[").find(*next_) == std::string_view::npos)
      ++next_;
    std::string_view const token(start, static_cast<std::size_t>(next_ - start));
    bool const number = token.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
    if (token.empty() || !(number || token == "true" || token == "false" || token == "null"))
      fail_at(start, syntax_ + ": expected a value, found " +
                         quoted(token.empty() ? std::string_view(next_, 1) : token));
  }

  /// Refuses anything but blanks up to the end.
  void finish() {
    skip_blanks();
    if (next_ == end_) return;
    if (*next_ == '\0')
      fail(syntax_ +
           ": padded with NUL bytes; the format pads with blanks, write the file again with a "
           "correct writer");
    fail(syntax_ + ": text after the closing '}', found " + found());
  }

  char const* place() const { return next_; }

 private:
  void skip_blanks() {
    while (next_ != end_ && (*next_ == ' ' || *next_ == '\t' || *next_ == '\n' || *next_ == '\r'))
      ++next_;
  }

  std::string found() const {
    if (next_ == end_) return "the end of the text";
    switch (*next_) {
      case '{':
        return "an object";
      case '[':
        return "an array";
      case '"':
        return "a string";
      default:
        return quoted({next_, 1});
    }
  }

  std::string nesting() const {
    bool const deeper = next_ != end_ && (*next_ == '{' || *next_ == '[');
    return deeper ? "; the format has no deeper nesting" : "";
  }

  unsigned hexadecimal() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i, ++next_) {
      char const c = next_ == end_ ? '\0' : *next_;
      unsigned digit = 16;
      if (c >= '0' && c <= '9') digit = unsigned(c - '0');
      if (c >= 'a' && c <= 'f') digit = unsigned(c - 'a') + 10;
      if (c >= 'A' && c <= 'F') digit = unsigned(c - 'A') + 10;
      if (digit == 16) fail(syntax_ + ": \\u needs four hexadecimal digits, found " + found());
      value = 16 * value + digit;
    }
    return value;
  }

  // Reads the escape at next_, writes what it stands for at `out`, returns the end of that.
  char* unescape(char* out) {
    char const* const start = next_++;
    if (next_ == end_) fail_at(start, syntax_ + ": a string does not end");
    char const c = *next_++;
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (auto const i = letters.find(c); i != std::string_view::npos) {
      *out++ = meanings[i];
      return out;
    }
    if (c != 'u') fail_at(start, syntax_ + ": unknown escape in a string");
    unsigned code = hexadecimal();
    if (code >= 0xd800 && code <= 0xdbff && end_ - next_ >= 6 && next_[0] == '\\' &&
        next_[1] == 'u') {
      next_ += 2;
      unsigned const low = hexadecimal();
      if (low < 0xdc00 || low > 0xdfff) fail_at(start, syntax_ + ": half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code <= 0xdfff) {
      fail_at(start, syntax_ + ": half of a surrogate pair");
    }
    auto const put = [&](unsigned byte) { *out++ = static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | (code >> 6)), put(0x80 | (code & 63));
    } else if (code < 0x10000) {
      put(0xe0 | (code >> 12)), put(0x80 | ((code >> 6) & 63)), put(0x80 | (code & 63));
    } else {
      put(0xf0 | (code >> 18)), put(0x80 | ((code >> 12) & 63)), put(0x80 | ((code >> 6) & 63)),
          put(0x80 | (code & 63));
    }
    return out;
  }

  std::string_view path_;
  char* begin_;
  char* next_;
  char* end_;
  std::int64_t first_byte_;
  std::string syntax_;
  std::string_view subject_;
};

}  // namespace dtm::io::detail
