#!/usr/bin/env bash
# usage: check.sh RULE REPOSITORY
# Rules of the house that a compiler does not check. Prints every offending line.
set -uo pipefail
export LC_ALL=C
rule=$1
cd "$2"

headers() { find "include/dtm/${1:-}" -name '*.hpp' -o -name '*.cuh' 2>/dev/null | sort; }
code() { sed -E 's#//.*##' "$1"; }  # comments may say what they like
offences=0
offence() {
  echo "$*"
  offences=$((offences + 1))
}

includes_only() {  # FOLDER REGEX: what headers of a folder may include beside their own library
  local header include
  for header in $(headers "$1"); do
    while read -r include; do
      [[ $include =~ ^\"|^\<dtm/ ]] || [[ $include =~ $2 ]] ||
        [[ $header =~ /(core/(errors|refusals)|contract/describe)\.hpp$ && $include =~ ^\<(stdexcept|string)\>$ ]] ||
        offence "$header includes $include"
    done < <(sed -nE 's/^ *# *include *([<"][^>"]*[>"]).*/\1/p' "$header")
  done
}

includes_none_of() {  # REGEX FOLDER...: paths below include/ that headers of the folders may not include
  local regex=$1 folder header include
  shift
  for folder in "$@"; do
    for header in $(headers "$folder"); do
      while read -r include; do
        offence "$header includes $include"
      done < <(sed -nE 's/^ *# *include *[<"]([^>"]*)[>"].*/\1/p' "$header" | grep -E -- "$regex")
    done
  done
}

tracked() { git ls-files -z 2>/dev/null; }

case $rule in
  pragma_once)
    for header in $(headers); do
      [ "$(head -1 "$header")" = "#pragma once" ] || offence "$header does not begin with #pragma once"
    done ;;
  no_using_namespace)
    for header in $(headers); do
      code "$header" | grep -nE '\busing +namespace\b' | sed "s#^#$header:#" | grep . && offence "$header"
    done ;;
  macros_have_a_prefix)
    for header in $(headers); do
      code "$header" | grep -nE '^ *# *define +' | grep -vE '# *define +(DTM_|MPICH_SKIP_MPICXX|OMPI_SKIP_MPICXX)' |
        sed "s#^#$header:#" | grep . && offence "$header"
    done ;;
  vocabulary_is_light)
    light='^<(concepts|type_traits|utility|cstddef|cstdint)>$'
    includes_only core "$light"
    includes_only contract "$light"
    for header in $(headers core) $(headers contract); do  # the words of errors stay out of the vocabulary
      [[ $header =~ /refusals\.hpp$ ]] || ! grep -nE '^ *# *include.*(core/(errors|refusals)|describe)\.hpp' "$header" ||
        offence "$header"
    done ;;
  dependencies_point_one_way)
    includes_none_of '^dtm/(contract|parameters|comm|backend|ops|modules|losses|models|io|train|serial|testing)/' core
    includes_none_of '^dtm/(parameters|comm|backend|ops|modules|losses|models|io|train|serial|testing)/' contract
    includes_none_of '^dtm/(contract|parameters|comm|backend|ops|modules|losses|models|io|train|testing)/' serial
    includes_none_of '^dtm/(ops|modules|losses|models|train|testing)/' comm backend io
    includes_none_of '^dtm/(modules|models)/' ops
    includes_none_of '^dtm/(testing)/' ops modules losses models train
    includes_none_of 'nlohmann' core contract parameters comm backend ops modules losses models train serial testing ;;
  modules_know_no_backend)
    for folder in modules ops losses models; do
      for header in $(headers "$folder"); do
        sed -nE 's/^ *# *include *[<"](dtm\/)?(backend\/[^>"]*|Eigen[^>"]*|unsupported[^>"]*|mpi\.h)[>"].*/\2/p' "$header" |
          grep -vE '^backend/(local|context|transposed|fused_rows|fused_attention|attended_rows)\.hpp$' | sed "s#^#$header includes #" | grep . && offence "$header"
      done
    done ;;
  headers_are_short)
    for header in $(headers); do
      lines=$(wc -l <"$header")
      [ "$lines" -le 400 ] || offence "$header has $lines lines; 400 are enough for one idea"
    done ;;
  stands_alone)
    # Paths of somebody's machine; the rules here are left out.
    tracked | xargs -0 grep -nIE '\.\./shared\b|(^|[^A-Za-z0-9_.])/(work|home|root)/' -- 2>/dev/null |
      grep -vE '^(tests/repository/check\.sh|tests/[a-z]*/planted\.sh|examples/data/[^:]*\.cif):' | grep . && offence "see above" ;;
  top_level)
    for entry in $(git ls-tree --name-only HEAD 2>/dev/null); do
      case $entry in
        CMakeLists.txt | CMakePresets.json | README.md | LICENSE | .clang-format | .gitignore | .ci) ;;
        include | tests | examples | docs) ;;
        *) offence "$entry does not belong to the top level" ;;
      esac
    done ;;
  *)
    offence "no such rule: $rule" ;;
esac
[ "$offences" = 0 ] && echo "clean"
