#pragma once
// Reads polymer chains from an mmCIF file, one token a residue.
//
// Rules:
// * Only the first model. A residue is part of a polymer when it has a label_seq_id; in a file that
//   has none at all, when it is an amino acid or a nucleotide that gemmi's table knows.
// * Tokens are the residues of the whole sequence (_entity_poly_seq); residues without coordinates
//   are kept and masked. Without the sequence in the file, tokens are the residues that have atoms.
// * A modified residue counts as its parent (MSE is methionine), a residue without known parent is
//   UNK ("X").
// * The representative atom is CB; CA for glycine; C4 for purines, C2 for pyrimidines, C1' for an
//   unknown nucleotide. A residue without it, or with "?" or "." as a coordinate, is masked.
// * Of alternate locations the one with the highest occupancy counts, the first of equals. Of
//   alternative residues at one position (microheterogeneity) the one named first.
// * A chain has the name its authors gave it (auth_asym_id), else its label_asym_id.
//
// Every fault of a file is a dtm::file_error that starts with the path; a chain that is not there
// is a dtm::argument_error. Nothing of gemmi shows in this header: it takes seconds to compile.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// Residue classes in the order of Boltz-2: pad, gap, 20 amino acids, UNK, RNA, DNA.
inline constexpr std::array<char const*, 33> residue_classes{
    "<pad>", "-",   "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HIS",
    "ILE",   "LEU", "LYS", "MET", "PHE", "PRO", "SER", "THR", "TRP", "TYR", "VAL",
    "UNK",   "A",   "G",   "C",   "U",   "N",   "DA",  "DG",  "DC",  "DT",  "DN"};

struct token {
  int residue_class = 0;  // index into residue_classes
  char letter = 'X';      // one-letter code of the parent residue
  std::int64_t residue_index =
      0;                     // position in the chain's sequence, from zero where the file gives it
  std::int64_t asym_id = 0;  // chain, counted over the chains that were taken
  std::int64_t entity_id = 0;        // molecule; chains with one sequence share it
  std::int64_t sym_id = 0;           // copy of the molecule
  bool resolved = false;             // the representative atom has coordinates
  std::array<double, 3> position{};  // zero where not resolved
};

struct structure {
  std::string name;                 // data block of the file
  std::vector<std::string> chains;  // names of the chains taken, by asym_id
  std::vector<token> tokens;

  std::string sequence() const;  // one letter a token
  std::int64_t resolved() const;
  std::uint64_t fingerprint() const;  // of all that the model sees
};

/// Reads the polymer chains of `path`: all of them, or those called `chain`.
structure read_structure(std::string const& path, std::string const& chain = {});

}  // namespace example
