#pragma once
// Golden files: load a case, run what is known under its module's name, compare, report one line a
// file.
//
// A runner turns a case into an outcome: whole arrays under the names that the file uses for the
// references, "output.y", "grad_input.x", "grad_param.norm.weight". Runners that compute on shards
// gather first. The comparison wants exactly the tensors that the file holds references for: one
// that is missing, left over, of other extents or not finite is a fault, however small the other
// errors are.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dtm/core/errors.hpp"
#include "dtm/io/safetensors.hpp"
#include "dtm/serial/array.hpp"

namespace dtm::golden {

using whole = serial::array<double>;
using outcome = std::map<std::string, whole>;

inline bool starts_with(std::string const& text, std::string const& prefix) {
  return text.rfind(prefix, 0) == 0;
}

/// One golden file in memory. Accessors throw file_error where the file lacks what is asked for.
class case_file {
 public:
  static case_file load(std::string const& path) {
    auto const file = io::safetensors_file::open(path);
    case_file result;
    result.path_ = path;
    for (auto const& [key, value] : file.metadata())
      result.metadata_[std::string(key)] = std::string(value);
    for (auto const& entry : file.entries()) {
      std::string const name(entry.name);
      serial::extent_list const extents(entry.shape.begin(), entry.shape.end());
      if (entry.type == io::dtype::i64)
        result.integers_[name] = {extents, file.read<std::int64_t>(name)};
      else
        result.reals_[name] = {extents, file.read_as<double>(name)};
    }
    return result;
  }

  std::string name() const { return std::filesystem::path(path_).stem().string(); }
  std::string module() const { return text("module"); }
  std::map<std::string, whole> const& reals() const { return reals_; }
  bool has(std::string const& name) const { return reals_.count(name) + integers_.count(name) > 0; }

  whole const& real(std::string const& name) const { return find(reals_, name); }

  /// Whole numbers, however the file stores them.
  serial::array<std::int64_t> integer(std::string const& name) const {
    if (integers_.count(name) > 0) return find(integers_, name);
    whole const& stored = real(name);
    serial::array<std::int64_t> result(stored.extents);
    for (std::size_t i = 0; i < stored.values.size(); ++i)
      result.values[i] = static_cast<std::int64_t>(stored.values[i]);
    return result;
  }

  std::string text(std::string const& key) const { return find(metadata_, key); }
  std::int64_t number(std::string const& key, std::int64_t otherwise) const {
    return metadata_.count(key) > 0 ? std::stoll(text(key)) : otherwise;
  }
  bool flag(std::string const& key, bool otherwise) const {
    return metadata_.count(key) > 0 ? text(key) == "true" || text(key) == "True" : otherwise;
  }

  /// A metadata value that is a JSON list of strings; the names in the files need no escapes.
  std::vector<std::string> list(std::string const& key) const {
    std::string const value = text(key);
    std::vector<std::string> result;
    for (std::size_t open = value.find('"'); open != std::string::npos;) {
      std::size_t const close = value.find('"', open + 1);
      if (close == std::string::npos) throw file_error(path_ + ": metadata " + key + " is no list");
      result.push_back(value.substr(open + 1, close - open - 1));
      open = value.find('"', close + 1);
    }
    return result;
  }

 private:
  template <class Value>
  Value const& find(std::map<std::string, Value> const& values, std::string const& name) const {
    auto const found = values.find(name);
    if (found == values.end()) throw file_error(path_ + ": has no " + name);
    return found->second;
  }

  std::string path_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, whole> reals_;
  std::map<std::string, serial::array<std::int64_t>> integers_;
};

/// Copies the file's parameters into a module that walks with each_parameter. The file's
/// registration order must be the module's.
template <class Module>
void load_parameters(case_file const& file, Module& module) {
  std::vector<std::string> const expected = file.list("parameters");
  std::vector<std::string> walked;
  module.each_parameter([&](std::string const& name, auto& values) {
    walked.push_back(name);
    whole const& stored = file.real("param." + name);
    serial::expect_extents(stored, values.extents, name.c_str());
    std::copy(stored.values.begin(), stored.values.end(), values.values.begin());
  });
  if (walked == expected) return;
  std::string text = file.name() + ": the module's parameters are";
  for (auto const& name : walked) text += " " + name;
  throw layout_error(text + ", the file registers " + file.text("parameters"));
}

/// Adds a gradient tree to an outcome under the names grad_param.<name>.
template <class Module>
void store_gradients(Module& gradients, outcome& result) {
  gradients.each_parameter([&](std::string const& name, auto& values) {
    result["grad_param." + name] = {values.extents, {values.values.begin(), values.values.end()}};
  });
}

/// max |difference| / max |reference|; absolute where the reference is zero up to rounding, as
/// gradients are that vanish in exact arithmetic.
inline double scaled_error(whole const& value, whole const& reference) {
  double difference = 0;
  double scale = 0;
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    if (!std::isfinite(value.values[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(value.values[i] - reference.values[i]));
    scale = std::max(scale, std::abs(reference.values[i]));
  }
  return scale > 1e-10 ? difference / scale : difference;
}

struct comparison {
  double tolerance = 0;
  double outputs = -1;  // the largest error of each kind; negative where the file has none
  double input_gradients = -1;
  double parameter_gradients = -1;
  int compared = 0;
  std::vector<std::string> faults;

  bool passed() const { return compared > 0 && faults.empty(); }
};

inline std::string number_text(double value) {
  if (value < 0) return "none   ";
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

inline comparison compare(case_file const& file, outcome const& result, double tolerance = 1e-12) {
  comparison c;
  c.tolerance = tolerance;
  std::pair<char const*, double*> const kinds[] = {{"output.", &c.outputs},
                                                   {"grad_input.", &c.input_gradients},
                                                   {"grad_param.", &c.parameter_gradients}};
  for (auto const& [name, reference] : file.reals())
    for (auto const& [prefix, worst] : kinds) {
      if (!starts_with(name, prefix)) continue;
      auto const found = result.find(name);
      if (found == result.end()) {
        c.faults.push_back(name + " is missing");
      } else if (found->second.extents != reference.extents) {
        c.faults.push_back(name + " has extents " + serial::to_string(found->second.extents) +
                           ", expected are " + serial::to_string(reference.extents));
      } else {
        double const error = scaled_error(found->second, reference);
        *worst = std::max(*worst, error);
        if (error > tolerance) c.faults.push_back(name + " is off by " + number_text(error));
        ++c.compared;
      }
    }
  for (auto const& [name, value] : result)
    if (!file.has(name)) c.faults.push_back(name + " has no reference");
  return c;
}

using runner = std::function<outcome(case_file const&)>;

/// Runners by the module name in a file's metadata. A name that ends with '*' stands for all names
/// that begin so.
class registry {
 public:
  void add(std::string module, runner run) {
    runners_.emplace_back(std::move(module), std::move(run));
  }

  /// Null for an unknown module.
  runner const* find(std::string const& module) const {
    for (auto const& [name, run] : runners_)
      if (name == module ||
          (name.back() == '*' && starts_with(module, name.substr(0, name.size() - 1))))
        return &run;
    return nullptr;
  }

 private:
  std::vector<std::pair<std::string, runner>> runners_;
};

struct summary {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

inline std::vector<std::string> files_in(std::string const& folder) {
  std::vector<std::string> paths;
  for (auto const& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The folder named by the environment, or the one given.
inline std::string folder_or(std::string const& otherwise) {
  char const* folder = std::getenv("DTM_GOLDEN_DIR");
  return folder != nullptr && *folder != '\0' ? folder : otherwise;
}

inline std::string line(std::string const& name, comparison const& c) {
  std::string text = name;
  text.resize(std::max<std::size_t>(name.size(), 44), ' ');
  text += " outputs " + number_text(c.outputs) + "  input gradients " +
          number_text(c.input_gradients) + "  parameter gradients " +
          number_text(c.parameter_gradients) + "  tolerance " + number_text(c.tolerance) +
          (c.passed() ? "  ok" : "  FAILED");
  for (auto const& fault : c.faults) text += "\n    " + fault;
  return text;
}

/// Runs every file of a folder through the registry and prints a line each, then a line of totals.
/// A file that cannot be read or whose runner throws has failed.
template <class Print>
summary run_folder(std::string const& folder, registry const& known, Print&& print,
                   double tolerance = 1e-12) {
  summary total;
  for (std::string const& path : files_in(folder)) {
    std::string const name = std::filesystem::path(path).stem().string();
    try {
      case_file const file = case_file::load(path);
      runner const* run = known.find(file.module());
      if (run == nullptr) {
        ++total.skipped;
        print(name + ": skipped, no module " + file.module() + " here");
        continue;
      }
      comparison const c = compare(file, (*run)(file), tolerance);
      ++(c.passed() ? total.passed : total.failed);
      print(line(name, c));
    } catch (std::exception const& e) {
      ++total.failed;
      print(name + ": FAILED, " + e.what());
    }
  }
  print("golden files in " + folder + ": " + std::to_string(total.passed) + " passed, " +
        std::to_string(total.failed) + " failed, " + std::to_string(total.skipped) + " skipped");
  return total;
}

}  // namespace dtm::golden
