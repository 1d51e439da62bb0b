// The only source that includes gemmi. The tables of the file are read directly rather than through
// gemmi's Structure: that one turns a coordinate "abc" into NaN, accepts an atom twice, and loses
// the sequence where the file has no _entity category.

#include "structure.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <gemmi/cif.hpp>
#include <gemmi/numb.hpp>
#include <gemmi/resinfo.hpp>

#include <dtm/core/errors.hpp>

namespace example {
namespace {

namespace cif = gemmi::cif;

struct atom {
  std::string name, alternate;
  std::optional<std::array<double, 3>> position;  // empty where the file says "?" or "."
  double occupancy = 1;
};

struct residue {
  std::string name;  // of the first atom; others at the same position are alternatives
  std::int64_t author_number = 0;
  std::vector<atom> atoms;
};

struct chain_atoms {
  std::string name, label, entity;
  bool numbered = true;  // keys are label_seq_id, from 1; else a running count
  std::map<std::int64_t, residue> residues;
};

[[noreturn]] void refuse(std::string const& path, std::string const& what) {
  throw dtm::file_error(path + ": " + what);
}

std::string read_text(std::string const& path) {
  if (std::filesystem::is_directory(path)) refuse(path, "this is a folder, not an mmCIF file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  if (text.str().find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse(path, "the file is empty; give the mmCIF file of a structure");
  }
  return text.str();
}

cif::Document parse(std::string const& path) {
  std::string const text = read_text(path);
  try {
    return cif::read_memory(text.data(), text.size(), path.c_str());
  } catch (std::exception const& fault) {
    std::string what = fault.what();  // "path:line:column(byte): what"
    if (what.rfind(path + ":", 0) == 0) what.erase(0, path.size() + 1);
    refuse(path, "not a valid mmCIF file, " + what);
  }
}

/// Class and parent letter of a residue name; nothing for what is neither amino acid nor
/// nucleotide.
struct kind {
  int residue_class;
  char letter;
};

int class_of(std::string const& name) {
  auto const found = std::find(residue_classes.begin(), residue_classes.end(), name);
  return found == residue_classes.end() ? -1 : int(found - residue_classes.begin());
}

std::optional<kind> known_kind(std::string const& name) {
  gemmi::ResidueInfo const info = gemmi::find_tabulated_residue(name);
  char const letter = char(std::toupper(info.one_letter_code));
  if (info.is_amino_acid()) {
    char const* parent = letter == ' ' ? nullptr : gemmi::expand_protein_one_letter(letter);
    int const found = parent ? class_of(parent) : -1;
    return found < 0 ? kind{class_of("UNK"), 'X'} : kind{found, letter};
  }
  if (info.is_nucleic_acid()) {
    std::string const prefix = info.is_dna() ? "D" : "";
    int const found = class_of(prefix + letter);
    return found < 0 ? kind{class_of(prefix + "N"), 'N'} : kind{found, letter};
  }
  return std::nullopt;
}

kind kind_of(std::string const& name) {
  return known_kind(name).value_or(kind{class_of("UNK"), 'X'});
}

char const* representative_atom(int residue_class) {
  std::string const name = residue_classes[std::size_t(residue_class)];
  if (name == "GLY") return "CA";
  if (name == "A" || name == "G" || name == "DA" || name == "DG") return "C4";
  if (name == "C" || name == "U" || name == "DC" || name == "DT") return "C2";
  if (name == "N" || name == "DN") return "C1'";
  return "CB";
}

/// Reads the rows of _atom_site. Columns that a file may lack are marked by "?", as gemmi wants it.
class atom_reader {
 public:
  atom_reader(std::string const& path, cif::Block& block)
      : path_(path),
        table_(
            block.find("_atom_site.",
                       {"Cartn_x", "Cartn_y", "Cartn_z", "?label_atom_id", "?auth_atom_id",
                        "?label_comp_id", "?auth_comp_id", "?label_asym_id", "?auth_asym_id",
                        "?label_seq_id", "?auth_seq_id", "?pdbx_PDB_ins_code", "?label_entity_id",
                        "?label_alt_id", "?occupancy", "?pdbx_PDB_model_num", "?id"})) {
    if (!table_.ok()) refuse(path_, "the file has no atoms (no _atom_site with coordinates)");
    if (!table_.has_column(label_atom) && !table_.has_column(auth_atom)) {
      refuse(path_, "_atom_site names no atoms (label_atom_id or auth_atom_id is missing)");
    }
    if (!table_.has_column(label_residue) && !table_.has_column(auth_residue)) {
      refuse(path_, "_atom_site names no residues (label_comp_id or auth_comp_id is missing)");
    }
    for (auto row : table_) numbered_ = numbered_ || row.has2(label_sequence);
  }

  /// The polymer chains of the first model, in order of appearance.
  std::vector<chain_atoms> read() {
    std::optional<std::string> first_model;
    for (auto row : table_) {
      std::string const number = text(row, model);
      if (!first_model) first_model = number;
      if (number == *first_model) add(row);
    }
    return std::move(chains_);
  }

 private:
  using row_type = cif::Table::Row;
  enum column {
    x,
    y,
    z,
    label_atom,
    auth_atom,
    label_residue,
    auth_residue,
    label_chain,
    auth_chain,
    label_sequence,
    auth_sequence,
    insertion,
    entity,
    alternate,
    occupancy,
    model,
    id
  };

  static std::string text(row_type& row, int which) {
    return row.has2(std::size_t(which)) ? row.str(which) : std::string();
  }
  static std::string either(row_type& row, int first, int second) {
    std::string found = text(row, first);
    return found.empty() ? text(row, second) : found;
  }

  std::string describe(row_type& row) const {
    return "atom " + text(row, id) + " (" + either(row, label_atom, auth_atom) + " of " +
           either(row, label_residue, auth_residue) + " " +
           either(row, auth_sequence, label_sequence) + text(row, insertion) + ", chain " +
           either(row, auth_chain, label_chain) + ")";
  }

  std::int64_t integer(row_type& row, int which, char const* what) const {
    std::string const value = text(row, which);
    char* end = nullptr;
    errno = 0;
    long long const number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || errno != 0) {
      refuse(path_,
             describe(row) + " has " + what + " '" + value + "', which is not a whole number");
    }
    return number;
  }

  std::optional<std::array<double, 3>> position(row_type& row) const {
    std::array<double, 3> result{};
    bool known = true;
    for (int axis = x; axis <= z; ++axis) {
      std::string const& value = row[axis];
      if (cif::is_null(value)) {
        known = false;
        continue;
      }
      double const number = cif::as_number(value);
      if (!std::isfinite(number)) {
        refuse(path_,
               describe(row) + " has the coordinate '" + value + "', which is not a finite number");
      }
      result[std::size_t(axis)] = number;
    }
    return known ? std::optional(result) : std::nullopt;
  }

  chain_atoms& chain_of(row_type& row) {
    std::string const label = either(row, label_chain, auth_chain);
    auto found = std::find_if(chains_.begin(), chains_.end(),
                              [&](auto const& c) { return c.label == label; });
    if (found != chains_.end()) return *found;
    chains_.push_back(
        {either(row, auth_chain, label_chain), label, text(row, entity), numbered_, {}});
    return chains_.back();
  }

  /// Without label_seq_id residues are told apart by author number, insertion code and name.
  std::int64_t running_number(row_type& row, chain_atoms const& chain) {
    std::string const key = chain.label + '\n' + text(row, auth_sequence) + '\n' +
                            text(row, insertion) + '\n' + either(row, label_residue, auth_residue);
    return running_.try_emplace(key, std::int64_t(chain.residues.size()) + 1).first->second;
  }

  void add(row_type& row) {
    auto const where = position(row);  // checked for every atom: a broken file is not half right
    std::string const name = either(row, label_residue, auth_residue);
    if (numbered_ ? !row.has2(label_sequence) : !known_kind(name)) return;
    chain_atoms& chain = chain_of(row);
    std::int64_t const number =
        numbered_ ? integer(row, label_sequence, "label_seq_id") : running_number(row, chain);
    residue& here = chain.residues[number];
    if (here.name.empty()) {
      here.name = name;
      here.author_number = numbered_ ? number : integer(row, auth_sequence, "auth_seq_id");
    }
    atom next{either(row, label_atom, auth_atom), text(row, alternate), where, 1};
    if (row.has2(occupancy)) next.occupancy = cif::as_number(row[occupancy], 1);
    // The name is part of the key: alternative residues at one position share atom names.
    std::string const key = chain.label + '\n' + std::to_string(number) + '\n' + name + '\n' +
                            next.name + '\n' + next.alternate;
    if (!seen_.insert(key).second) refuse(path_, describe(row) + " is in the file twice");
    if (name == here.name) here.atoms.push_back(std::move(next));
  }

  std::string const& path_;
  cif::Table table_;
  bool numbered_ = false;
  std::vector<chain_atoms> chains_;
  std::map<std::string, std::int64_t> running_;
  std::set<std::string> seen_;
};

using sequences =
    std::map<std::string, std::vector<std::vector<std::string>>>;  // entity, position: names

/// _entity_poly_seq: the residue names at every position, more than one where the file says so.
sequences read_sequences(std::string const& path, cif::Block& block) {
  sequences result;
  for (auto row : block.find("_entity_poly_seq.", {"entity_id", "num", "mon_id"})) {
    auto& sequence = result[row.str(0)];
    std::size_t const number = std::size_t(std::max(0, std::atoi(row.str(1).c_str())));
    if (number == sequence.size() + 1) {
      sequence.push_back({row.str(2)});
    } else if (number == sequence.size() && number > 0) {
      sequence.back().push_back(row.str(2));
    } else {
      refuse(path, "_entity_poly_seq of entity " + row.str(0) + " continues with number '" +
                       row.str(1) + "' after " + std::to_string(sequence.size()));
    }
  }
  return result;
}

void name_entities(cif::Block& block, std::vector<chain_atoms>& chains) {
  std::map<std::string, std::string> entity_of;
  for (auto row : block.find("_struct_asym.", {"id", "entity_id"}))
    entity_of[row.str(0)] = row.str(1);
  for (auto& chain : chains) {
    if (chain.entity.empty() && entity_of.count(chain.label)) chain.entity = entity_of[chain.label];
  }
}

token make_token(std::string const& name, std::int64_t residue_index, residue const* atoms) {
  token result;
  kind const what = kind_of(name);
  result.residue_class = what.residue_class;
  result.letter = what.letter;
  result.residue_index = residue_index;
  if (!atoms) return result;
  atom const* best = nullptr;
  for (atom const& candidate : atoms->atoms) {
    if (candidate.name != representative_atom(what.residue_class) || !candidate.position) continue;
    if (!best || candidate.occupancy > best->occupancy) best = &candidate;
  }
  result.resolved = best != nullptr;
  if (best) result.position = *best->position;
  return result;
}

std::vector<token> tokens_of_sequence(std::string const& path, chain_atoms const& chain,
                                      std::vector<std::vector<std::string>> const& sequence) {
  for (auto const& [number, here] : chain.residues) {
    std::string const what =
        "residue " + here.name + " " + std::to_string(number) + " of chain " + chain.name;
    if (number < 1 || number > std::int64_t(sequence.size())) {
      refuse(path,
             what + " is outside its sequence of " + std::to_string(sequence.size()) + " residues");
    }
    auto const& names = sequence[std::size_t(number - 1)];
    if (std::find(names.begin(), names.end(), here.name) == names.end()) {
      refuse(path, what + " is " + names.front() + " in the sequence of the file");
    }
  }
  std::vector<token> result;
  for (std::size_t index = 0; index < sequence.size(); ++index) {
    auto const found = chain.residues.find(std::int64_t(index) + 1);
    bool const present = found != chain.residues.end();
    result.push_back(make_token(present ? found->second.name : sequence[index].front(),
                                std::int64_t(index), present ? &found->second : nullptr));
  }
  return result;
}

/// Without a sequence: the residues that have atoms. The position is the number of the file where
/// it increases from residue to residue, which keeps gaps, else a running count.
std::vector<token> tokens_of_atoms(chain_atoms const& chain) {
  bool increasing = true;
  std::optional<std::int64_t> previous;
  for (auto const& [number, here] : chain.residues) {
    increasing = increasing && (!previous || here.author_number > *previous);
    previous = here.author_number;
  }
  std::vector<token> result;
  for (auto const& [number, here] : chain.residues) {
    result.push_back(
        make_token(here.name, increasing ? here.author_number - 1 : number - 1, &here));
  }
  return result;
}

void select_chain(std::string const& path, std::string const& chain,
                  std::vector<chain_atoms>& chains) {
  if (chains.empty()) refuse(path, "the file has no polymer chain");
  if (chain.empty()) return;
  std::string names;
  for (auto const& one : chains) names += (names.empty() ? "" : ", ") + one.name;
  std::erase_if(chains, [&](chain_atoms const& one) { return one.name != chain; });
  if (chains.empty()) {
    throw dtm::argument_error("chain '" + chain + "' is not in " + path +
                              "; its polymer chains are " + names);
  }
}

}  // namespace

structure read_structure(std::string const& path, std::string const& chain) {
  cif::Document document = parse(path);
  auto const has_atoms = [](cif::Block& block) { return block.has_tag("_atom_site.Cartn_x"); };
  auto block = std::find_if(document.blocks.begin(), document.blocks.end(), has_atoms);
  if (block == document.blocks.end())
    refuse(path, "the file has no atoms (no _atom_site with coordinates)");

  std::vector<chain_atoms> chains = atom_reader(path, *block).read();
  select_chain(path, chain, chains);
  name_entities(*block, chains);
  sequences const all_sequences = read_sequences(path, *block);

  structure result;
  result.name = block->name;
  std::map<std::string, std::int64_t> entity_numbers;
  std::map<std::string, std::int64_t> copies;
  for (chain_atoms const& one : chains) {
    auto const sequence = all_sequences.find(one.entity);
    std::vector<token> tokens = one.numbered && sequence != all_sequences.end()
                                    ? tokens_of_sequence(path, one, sequence->second)
                                    : tokens_of_atoms(one);
    // Chains without an entity in the file are one molecule where their residues are the same.
    std::string entity = "entity " + one.entity;
    if (one.entity.empty()) {
      entity = "residues";
      for (token const& each : tokens) entity += ' ' + std::to_string(each.residue_class);
    }
    std::int64_t const entity_id =
        entity_numbers.try_emplace(entity, std::int64_t(entity_numbers.size())).first->second;
    std::int64_t const sym_id = copies[entity]++;
    for (token& each : tokens) {
      each.asym_id = std::int64_t(result.chains.size());
      each.entity_id = entity_id;
      each.sym_id = sym_id;
    }
    result.chains.push_back(one.name);
    result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end());
  }
  if (result.resolved() == 0) {
    refuse(path, "none of the " + std::to_string(result.tokens.size()) +
                     " residues has coordinates of its representative atom (CB, CA for glycine)");
  }
  return result;
}

std::string structure::sequence() const {
  std::string result;
  for (token const& each : tokens) result += each.letter;
  return result;
}

std::uint64_t structure::fingerprint() const {
  std::uint64_t result = 0xcbf29ce484222325u;  // FNV-1a
  auto const add = [&](auto value) {
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    for (unsigned char const byte : bytes) result = (result ^ byte) * 0x100000001b3u;
  };
  for (token const& each : tokens) {
    add(each.residue_class);
    for (std::int64_t const id : {each.residue_index, each.asym_id, each.entity_id, each.sym_id})
      add(id);
    add(each.resolved);
    for (double const coordinate : each.position) add(coordinate);
  }
  return result;
}

std::int64_t structure::resolved() const {
  return std::count_if(tokens.begin(), tokens.end(),
                       [](token const& each) { return each.resolved; });
}

}  // namespace example
