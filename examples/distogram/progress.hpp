#pragma once
// Progress of the training: one line that is rewritten on a terminal, else a plain line every so
// many steps. For rank 0.

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>

namespace example {

class progress {
 public:
  /// `best_constant`: printed beside the loss for comparison.
  progress(std::ostream& out, bool terminal, int steps, double best_constant)
      : out_(out), terminal_(terminal), steps_(steps), best_constant_(best_constant) {}

  /// After step `step` (from 1), whose loss was `loss`, `seconds` after the start.
  void update(int step, double loss, double seconds) {
    bool const last = step == steps_;
    if (!terminal_ && step != 1 && step % interval() != 0 && !last) return;
    double const each = seconds / step;
    char text[160];
    std::snprintf(text, sizeof text, "step %*d/%d  loss %.4f  (best constant %.4f)  %.2f s/step",
                  width(), step, steps_, loss, best_constant_, each);
    if (!terminal_) {
      out_ << text << '\n' << std::flush;
      return;
    }
    int const filled = int(20. * step / steps_);
    char left[40];
    std::snprintf(left, sizeof left, "  %.0f s left", each * (steps_ - step));
    out_ << "\r[" << std::string(std::size_t(filled), '=')
         << std::string(std::size_t(20 - filled), ' ') << "] " << text << left << "\033[K"
         << (last ? "\n" : "") << std::flush;
    open_ = !last;
  }

  /// Ends an open line, so that an error's sentence starts on a new one.
  ~progress() {
    if (open_) out_ << '\n' << std::flush;
  }
  progress(progress const&) = delete;

 private:
  int interval() const { return std::max(1, steps_ / 20); }
  int width() const { return int(std::to_string(steps_).size()); }

  std::ostream& out_;
  bool terminal_;
  int steps_;
  double best_constant_;
  bool open_ = false;
};

}  // namespace example
