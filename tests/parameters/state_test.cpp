// State in files: written by rank 0, read by all, by the serial names; what does not fit is
// refused on all ranks.

#include "dtm/io/state.hpp"

#include <filesystem>

#include "small_model.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;

std::string path_of(char const* name) {
  return (std::filesystem::temp_directory_path() /
          ("dtm_state_" + std::string(testing::device::name) + std::to_string(testing::ranks()) +
           name))
      .string();
}

template <class Module>
std::string refusal(Module& module, std::string const& path) {
  try {
    io::load_state(testing::world(), module, path);
  } catch (file_error const& fault) {
    return fault.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("what was saved loads bit for bit, and a narrower file into a wider model") {
  auto ctx = small::on_mesh();
  small::model<float> saved(ctx, 2), loaded(ctx, 2);
  small::fill(saved);
  small::fill(loaded, 3);
  std::string const path = path_of("round_trip.safetensors");
  io::save_state(testing::world(), saved, path, {{"step", "12"}});
  io::load_state(testing::world(), loaded, path);
  small::model<double> wide(ctx, 2);
  io::load_state(testing::world(), wide, path);
  auto const a = named_parameters(saved), b = named_parameters(loaded);
  auto const w = named_parameters(wide);
  for (std::size_t p = 0; p < a.size(); ++p) {
    auto const values = a[p].values();
    INFO(a[p].name);
    CHECK(values == b[p].values());
    CHECK(std::vector<double>(values.begin(), values.end()) == w[p].values());
  }
  CHECK(io::safetensors_file::open(path).metadata("step") == std::optional<std::string>("12"));
}

TEST_CASE("a state that does not fit is refused with names, and changes nothing") {
  auto ctx = small::on_mesh();
  small::model<float> deep(ctx, 2), shallow(ctx, 1);
  small::fill(deep);
  small::fill(shallow, 3);
  std::string const path = path_of("misfit.safetensors");
  io::save_state(testing::world(), deep, path);
  CHECK(refusal(shallow, path).find("layers.1.tri_mul_out.norm_in.weight") != std::string::npos);
  io::save_state(testing::world(), shallow, path);
  CHECK(refusal(deep, path).find("missing") != std::string::npos);
  small::model<bf16> narrow(ctx, 1);
  CHECK(refusal(narrow, path).find("without loss") != std::string::npos);
  CHECK(refusal(deep, path_of("nowhere")).find("nowhere") != std::string::npos);
  for (auto const& view : named_parameters(shallow))
    CHECK(view.values()[0] == float(3 * small::value_of(view.name, 0)));
}
