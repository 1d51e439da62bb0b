#pragma once
// Peaks of memory by name: of a module, a step, whatever a scope holds (memory::tagged).

#include <cstddef>
#include <cstdint>

namespace dtm {

/// The most bytes under one tag, above those that were there when it began.
struct memory_mark {
  char const* tag = "";
  std::int64_t peak_bytes = 0;           // tensors and scratch
  std::int64_t communication_bytes = 0;  // copies on their way
  std::int64_t together_bytes = 0;       // both at once
  std::int64_t times = 0;                // scopes that have ended
};

/// One mark a name, in the order of their first end. Holds its marks itself, so that noting one
/// allocates nothing; when there are more names than room the last is "(others)".
class memory_marks {
 public:
  static constexpr std::size_t most = 64;

  std::size_t size() const { return size_; }
  memory_mark const& operator[](std::size_t i) const { return marks_[i]; }
  memory_mark const* begin() const { return marks_; }
  memory_mark const* end() const { return marks_ + size_; }
  memory_mark const* find(char const* tag) const {
    for (auto const& mark : *this)
      if (__builtin_strcmp(mark.tag, tag) == 0) return &mark;
    return nullptr;
  }
  void clear() { size_ = 0; }

  void note(memory_mark const& scope) {
    auto& mark = named(scope.tag);
    raise(mark.peak_bytes, scope.peak_bytes);
    raise(mark.communication_bytes, scope.communication_bytes);
    raise(mark.together_bytes, scope.together_bytes);
    mark.times += scope.times;
  }

 private:
  static void raise(std::int64_t& peak, std::int64_t seen) {
    if (seen > peak) peak = seen;
  }
  memory_mark& named(char const* tag) {
    for (std::size_t i = 0; i < size_; ++i)
      if (__builtin_strcmp(marks_[i].tag, tag) == 0) return marks_[i];
    if (size_ == most) return marks_[most - 1];
    marks_[size_] = {size_ + 1 == most ? "(others)" : tag};
    return marks_[size_++];
  }

  memory_mark marks_[most];
  std::size_t size_ = 0;
};

}  // namespace dtm
