#include "support/catch.hpp"

#include "../structure.hpp"

#include <dtm/core/errors.hpp>

#include "structures.hpp"

using namespace example;
using dtm::testing::contains;
using example::testing::atoms_of_three;
using example::testing::cif;
using example::testing::replaced;
using example::testing::temporary_file;

namespace {

std::string const data = DTM_EXAMPLE_DATA;

structure read(std::string const& text, std::string const& chain = {}) {
  temporary_file const file(text);
  return read_structure(file.path(), chain);
}

/// The sentence of the file_error, behind the path.
std::string fault(std::string const& text) {
  temporary_file const file(text);
  try {
    read_structure(file.path());
  } catch (dtm::file_error const& error) {
    std::string const what = error.what();
    CHECK(what.rfind(file.path() + ": ", 0) == 0);
    CHECK(what.find('\n') == what.npos);
    return what.substr(file.path().size() + 2);
  }
  return "accepted";
}

std::string class_name(token const& each) {
  return residue_classes[std::size_t(each.residue_class)];
}

}  // namespace

TEST_CASE("1a8o: one chain, selenomethionine is methionine") {
  structure const protein = read_structure(data + "/1a8o.cif");
  CHECK(protein.name == "1A8O");
  CHECK(protein.chains == std::vector<std::string>{"A"});
  CHECK(protein.sequence() ==
        "MDIRQGPKEPFRDYVDRFYKTLRAEQASQEVKNWMTETLLVQNANPDCKTILKALGPGATLEEMMTACQG");
  CHECK(protein.resolved() == 70);
  CHECK(class_name(protein.tokens[0]) == "MET");
  CHECK(protein.tokens[0].position == std::array<double, 3>{19.457, 32.943, 25.591});
  CHECK(protein.tokens[69].residue_index == 69);
}

TEST_CASE("1gbt: water and ligands are left out, author gaps do not matter") {
  structure const protein = read_structure(data + "/1gbt.cif", "A");
  CHECK(protein.tokens.size() == 223);
  CHECK(protein.resolved() == 223);
  CHECK(protein.tokens.back().residue_index == 222);
  CHECK(protein.sequence().substr(0, 10) == "IVGGYTCGAN");
}

TEST_CASE("the fingerprint sees what the model sees") {
  auto const of = [](std::string const& atoms) { return read(cif(atoms)).fingerprint(); };
  CHECK(of(atoms_of_three) == of(atoms_of_three));
  CHECK(of(atoms_of_three) != of(replaced(atoms_of_three, "4.0 0.0 0.0", "4.0 0.1 0.0")));
}

TEST_CASE("representative atoms and indices") {
  structure const protein = read(cif(atoms_of_three));
  REQUIRE(protein.tokens.size() == 3);
  CHECK(protein.chains == std::vector<std::string>{"X"});  // the author's name
  CHECK(protein.tokens[0].position[0] == 1);               // CB of alanine
  CHECK(protein.tokens[1].position[0] == 4);               // CA of glycine
  CHECK(protein.tokens[2].position[1] == 1);               // CB of MSE
  CHECK(protein.sequence() == "AGM");
  CHECK(protein.tokens[2].residue_index == 2);
}

TEST_CASE("G3: an unknown coordinate masks, as a missing atom does") {
  auto const unknown =
      read(cif(replaced(atoms_of_three, "1.0 0.0 0.0 1.0 10", "? 0.0 0.0 1.0 10")));
  CHECK_FALSE(unknown.tokens[0].resolved);
  CHECK(unknown.resolved() == 2);
  auto const missing = read(cif(replaced(atoms_of_three, "ATOM 2 C CB", "ATOM 2 C CD")));
  CHECK_FALSE(missing.tokens[0].resolved);
  CHECK(missing.tokens[0].position == std::array<double, 3>{});
}

TEST_CASE("residues of the sequence without atoms are kept and masked") {
  auto const protein = read(cif(atoms_of_three, testing::three + "1 4 TRP n\n"));
  CHECK(protein.sequence() == "AGMW");
  CHECK_FALSE(protein.tokens[3].resolved);
}

TEST_CASE("G7: alternate locations, models, microheterogeneity, insertion codes") {
  SECTION("highest occupancy") {
    auto text = replaced(atoms_of_three, "CB . ALA A 1 1 ? 1.0 0.0 0.0 1.0",
                         "CB A ALA A 1 1 ? 1.0 0.0 0.0 0.3");
    text += "ATOM 7 C CB B ALA A 1 1 ? 2.0 0.0 0.0 0.7 10 X 1\n";
    CHECK(read(cif(text)).tokens[0].position[0] == 2);
  }
  SECTION("the first of equals") {
    auto text = replaced(atoms_of_three, "CB . ALA A 1 1 ? 1.0 0.0 0.0 1.0",
                         "CB A ALA A 1 1 ? 1.0 0.0 0.0 0.5");
    text += "ATOM 7 C CB B ALA A 1 1 ? 2.0 0.0 0.0 0.5 10 X 1\n";
    CHECK(read(cif(text)).tokens[0].position[0] == 1);
  }
  SECTION("first model") {
    auto const text = atoms_of_three + "ATOM 7 C CB . ALA A 1 1 ? 5.0 0.0 0.0 1.0 10 X 2\n";
    CHECK(read(cif(text)).tokens[0].position[0] == 1);
  }
  SECTION("alternative residues at one position") {
    auto const text = atoms_of_three + "ATOM 7 C CB B SER A 1 1 ? 5.0 0.0 0.0 1.0 10 X 1\n";
    auto const protein = read(cif(text, "1 1 ALA y\n1 1 SER y\n1 2 GLY n\n1 3 MSE n\n"));
    CHECK(protein.sequence() == "AGM");
    CHECK(protein.tokens[0].position[0] == 1);
  }
  SECTION("insertion codes do not merge residues") {
    auto const text = replaced(atoms_of_three, "GLY A 1 2 ? 4.0 0.0 0.0 1.0 11",
                               "GLY A 1 2 A 4.0 0.0 0.0 1.0 10");
    CHECK(read(cif(text)).tokens.size() == 3);
  }
}

TEST_CASE("G6: no sequence, no entity, no label ids") {
  SECTION("without the sequence: residues with atoms, numbered as labelled") {
    auto const text =
        replaced(replaced(atoms_of_three, "MSE A 1 3", "MSE A 1 5"), "MSE A 1 3", "MSE A 1 5");
    auto const protein = read(cif(text, ""));
    CHECK(protein.sequence() == "AGM");
    CHECK(protein.tokens[2].residue_index == 4);
  }
  SECTION(
      "without label_seq_id: polymers are what the residue table knows; author numbers keep gaps") {
    std::string const text =
        "data_x\nloop_\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n_atom_site.auth_asym_"
        "id\n"
        "_atom_site.auth_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
        "CB ALA A 5 0 0 0\nCB SER A 8 5 0 0\nO HOH A 9 1 1 1\nCB ALA B 5 0 9 0\nCB SER B 8 5 9 0\n";
    auto const protein = read(text);
    CHECK(protein.chains == std::vector<std::string>{"A", "B"});
    CHECK(protein.sequence() == "ASAS");
    CHECK(protein.tokens[1].residue_index == 7);
    CHECK(protein.tokens[2].asym_id == 1);
    CHECK(protein.tokens[2].entity_id == 0);  // same residues: same molecule
    CHECK(protein.tokens[2].sym_id == 1);
    CHECK(read(text, "B").tokens.size() == 2);
  }
}

TEST_CASE(
    "G9: unknown residues and five-letter names are UNK; nucleotides have classes of their own") {
  auto text =
      replaced(replaced(atoms_of_three, "CA . ALA", "CA . A1BCD"), "CB . ALA", "CB . A1BCD");
  auto const protein = read(cif(text, "1 1 A1BCD n\n1 2 GLY n\n1 3 MSE n\n"));
  CHECK(class_name(protein.tokens[0]) == "UNK");
  CHECK(protein.sequence() == "XGM");
  CHECK(protein.tokens[0].resolved);

  auto const dna =
      read(cif("ATOM 1 C C4 . DA A 1 1 ? 0.0 0.0 0.0 1.0 1 X 1\nATOM 2 C C2 . DT A 1 2 ? 6.0 0.0 "
               "0.0 1.0 2 X 1\n",
               "1 1 DA n\n1 2 DT n\n"));
  CHECK(class_name(dna.tokens[0]) == "DA");
  CHECK(class_name(dna.tokens[1]) == "DT");
  CHECK(dna.resolved() == 2);
}

TEST_CASE("files that cannot be read") {
  CHECK_THROWS_WITH(read_structure("/nonexistent/x.cif"),
                    contains("/nonexistent/x.cif: cannot be opened: No such file or directory"));
  CHECK_THROWS_WITH(read_structure(data), contains("this is a folder"));
  CHECK_THAT(fault(""), contains("the file is empty"));  // G1
  CHECK_THAT(fault(" \n\n"), contains("the file is empty"));
  CHECK_THAT(fault("ATOM      1  N   MET A   1\n"), contains("not a valid mmCIF file"));
  std::string const whole = cif(atoms_of_three);
  CHECK_THAT(fault(whole.substr(0, whole.find("8.0 1.0"))),
             contains("not a valid mmCIF file"));  // G2
  CHECK_THAT(fault("data_x\n_cell.length_a 1.0\n"), contains("no atoms"));
  CHECK_THAT(fault(cif("HETATM 6 O O . HOH B 2 . ? 9.0 9.0 9.0 1.0 201 X 1\n")),
             contains("no polymer chain"));
}

TEST_CASE("G3, G4: coordinates that are not numbers name the atom") {
  CHECK(fault(cif(replaced(atoms_of_three, "4.0 0.0 0.0", "abc 0.0 0.0"))) ==
        "atom 3 (CA of GLY 11, chain X) has the coordinate 'abc', which is not a finite number");
  CHECK_THAT(fault(cif(replaced(atoms_of_three, "4.0 0.0 0.0", "4.0 1e400 0.0"))),
             contains("'1e400'"));
  CHECK_THAT(fault(cif(replaced(atoms_of_three, "4.0 0.0 0.0", "4.0 nan 0.0"))), contains("'nan'"));
  CHECK_THAT(fault(cif(replaced(atoms_of_three, "9.0 9.0 9.0", "9.0 9.0 x"))), contains("HOH 201"));
}

TEST_CASE("G5, G8: duplicates are refused") {
  CHECK(fault(cif(atoms_of_three + "ATOM 7 C CB . ALA A 1 1 ? 5.0 0.0 0.0 1.0 10 X 1\n")) ==
        "atom 7 (CB of ALA 10, chain X) is in the file twice");
}

TEST_CASE("atoms that contradict the sequence are refused") {
  CHECK_THAT(fault(cif(atoms_of_three, "1 1 ALA n\n1 2 GLY n\n")),
             contains("outside its sequence of 2 residues"));
  CHECK_THAT(fault(cif(atoms_of_three, "1 1 ALA n\n1 2 TRP n\n1 3 MSE n\n")),
             contains("residue GLY 2 of chain X is TRP in the sequence"));
  CHECK_THAT(fault(cif(replaced(atoms_of_three, "GLY A 1 2", "GLY A 1 2b"))),
             contains("not a whole number"));
}

TEST_CASE("no representative atom at all") {
  CHECK_THAT(fault(cif("ATOM 1 C CA . ALA A 1 1 ? 0.0 0.0 0.0 1.0 10 X 1\n")),
             contains("none of the 3 residues has coordinates"));
}

TEST_CASE("a chain that is not there is an argument error that lists the chains") {
  temporary_file const file(cif(atoms_of_three));
  CHECK_THROWS_AS(read_structure(file.path(), "Q"), dtm::argument_error);
  CHECK_THROWS_WITH(read_structure(file.path(), "Q"),
                    contains("chain 'Q' is not in") && contains("its polymer chains are X"));
}
