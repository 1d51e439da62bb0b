#pragma once
// mmCIF files made up for the tests: three residues with the atoms that matter.

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace example::testing {

inline std::string const sequence_table =
    "loop_\n_entity_poly_seq.entity_id\n_entity_poly_seq.num\n_entity_poly_seq.mon_id\n"
    "_entity_poly_seq.hetero\n";

inline std::string const atom_table =
    "loop_\n_atom_site.group_PDB\n_atom_site.id\n_atom_site.type_symbol\n_atom_site.label_atom_id\n"
    "_atom_site.label_alt_id\n_atom_site.label_comp_id\n_atom_site.label_asym_id\n"
    "_atom_site.label_entity_id\n_atom_site.label_seq_id\n_atom_site.pdbx_PDB_ins_code\n"
    "_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n_atom_site.occupancy\n"
    "_atom_site.auth_seq_id\n_atom_site.auth_asym_id\n_atom_site.pdbx_PDB_model_num\n";

inline std::string const three = "1 1 ALA n\n1 2 GLY n\n1 3 MSE n\n";

inline std::string const atoms_of_three =
    "ATOM 1 C CA . ALA A 1 1 ? 0.0 0.0 0.0 1.0 10 X 1\n"
    "ATOM 2 C CB . ALA A 1 1 ? 1.0 0.0 0.0 1.0 10 X 1\n"
    "ATOM 3 C CA . GLY A 1 2 ? 4.0 0.0 0.0 1.0 11 X 1\n"
    "HETATM 4 C CA . MSE A 1 3 ? 8.0 0.0 0.0 1.0 14 X 1\n"
    "HETATM 5 C CB . MSE A 1 3 ? 8.0 1.0 0.0 1.0 14 X 1\n"
    "HETATM 6 O O . HOH B 2 . ? 9.0 9.0 9.0 1.0 201 X 1\n";

inline std::string cif(std::string const& atoms, std::string const& sequence = three) {
  return "data_TEST\n#\n" + (sequence.empty() ? "" : sequence_table + sequence + "#\n") +
         atom_table + atoms + "#\n";
}

inline std::string replaced(std::string text, std::string const& from, std::string const& to) {
  std::size_t const at = text.find(from);
  return at == text.npos ? "nothing to replace" : text.replace(at, from.size(), to);
}

/// A file that is gone at the end of the scope.
class temporary_file {
 public:
  explicit temporary_file(std::string const& text, std::string const& name = "structure.cif")
      : path_((std::filesystem::temp_directory_path() /
               ("dtm-example-" + std::to_string(::getpid()) + "-" + name))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(temporary_file const&) = delete;
  std::string const& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace example::testing
