#pragma once
// Groups as the environment wants them: DTM_TEST_TRANSPORT=shared_memory lets their ranks read each
// other's memory, as the context of the host does; otherwise messages.

#include <dtm/backend/host/backend.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtm::testing {

inline bool wants_shared_memory() {
  char const* const how = std::getenv("DTM_TEST_TRANSPORT");
  return how != nullptr && std::string_view(how) == "shared_memory";
}

class test_mesh : public comm::mesh_groups {
 public:
  test_mesh(comm::world& ranks, std::vector<std::string> names, std::vector<int> sizes,
            comm::call_site where = comm::call_site::current())
      : mesh_groups(ranks, std::move(names), std::move(sizes), where) {
    if (!wants_shared_memory() || ranks.size() == 1) return;
    backend<host>::options options;
    options.transport = comm::transport::shared_memory;
    host_ = std::make_unique<backend<host>>(ranks, options, where);
    host_->attach(memory_);
    host_->connect(*this, memory_);
  }

  /// Operations of the world that making one took.
  static int operations() { return wants_shared_memory() ? 3 : 1; }

 private:
  memory memory_;
  std::unique_ptr<backend<host>> host_;
};

}  // namespace dtm::testing
