# How tests are added. Helpers:
#
#   dtm_add_mpi_test(NAME name SOURCES a.cpp... RANKS 1 2 4
#                    [LABELS l...] [TIMEOUT seconds] [LIBRARIES target...] [ARGUMENTS argument...]
#                    [ENVIRONMENT NAME=value...] [COMPILE_OPTIONS option...])
#     One Catch2 program under mpiexec, one ctest entry per rank count: name.np1, name.np2, name.np4.
#     Rank counts are never dropped for lack of cores: four ranks on two cores are slow, not wrong.
#
#   dtm_add_backend_test(NAME name BACKEND backend SOURCES a.cpp... RANKS 1 2 4 [the same options])
#     Sources that include support/backend.hpp, on host, emulated or cuda: name, name_emulated, name_cuda.
#     Cuda are the stand-ins of gpu/stand_in, and no test where they miss headers; with DTM_TEST_ON_GPU a GPU.
#
#   dtm_add_test(NAME name SOURCES a.cpp... [the same options without RANKS])
#     One Catch2 program in a single process.
#
#   dtm_add_negative_test(file.cpp [LABELS l...] [COMPILE_OPTIONS option...])
#     Programs that must not compile. The file holds `#if DTM_CASE == n` sections and lines
#     `// case n: regex` (grep -E; several lines for one case must all match). Case 0 is the control and
#     compiles; every other case fails with exactly one `error:`. One ctest entry per file and compiler.
#
#   dtm_add_static_test(file.cpp [LABELS l...] [COMPILE_OPTIONS option...])
#     A translation unit of static_asserts that must compile. One ctest entry per compiler.
#
#   dtm_limit_mpi_test(name RANKS n TIMEOUT seconds [LABELS l...] [ENVIRONMENT NAME=value...])
#     Processors, time limits and labels for a test of any other program that add_test runs under mpiexec.
#
# Test programs include "support/catch.hpp" and "support/runner.hpp".

include_guard(GLOBAL)

# Variables of the helpers are internal cache entries, because examples/ calls the helpers too.
cmake_path(SET tests NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/..)
set(DTM_TESTS_DIR ${tests} CACHE INTERNAL "the folder of the tests")

find_package(Catch2 REQUIRED)

# ---- compilers of the tests that only parse ----------------------------------------------------------
find_program(DTM_GXX NAMES g++-12 g++ DOC "g++ of the negative and static tests")
find_program(DTM_CLANGXX NAMES clang++-14 clang++ DOC "clang++ of the negative and static tests")
set(DTM_SYNTAX_COMPILERS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND DTM_SYNTAX_COMPILERS gcc=${CMAKE_CXX_COMPILER})
elseif(DTM_GXX)
  list(APPEND DTM_SYNTAX_COMPILERS gcc=${DTM_GXX})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND DTM_SYNTAX_COMPILERS clang=${CMAKE_CXX_COMPILER})
elseif(DTM_CLANGXX)
  list(APPEND DTM_SYNTAX_COMPILERS clang=${DTM_CLANGXX})
endif()

# ---- flags and the runner ----------------------------------------------------------------------------
# Tests keep their asserts in every build type.
add_library(dtm_test_options INTERFACE)
target_compile_options(dtm_test_options INTERFACE -UNDEBUG -Wall -Wextra)
target_include_directories(dtm_test_options INTERFACE ${DTM_TESTS_DIR})
target_link_libraries(dtm_test_options INTERFACE dtm::dtm Catch2::Catch2)

# Catch2 2 compiles its runner with main; doing so costs half a minute optimised, hence once and at -O0.
add_library(dtm_test_runner OBJECT ${DTM_TESTS_DIR}/support/main.cpp)
target_compile_options(dtm_test_runner PRIVATE -O0)
target_link_libraries(dtm_test_runner PUBLIC dtm_test_options)

# Matrix products are a third of what a unit of a module test costs the compiler: once, optimised.
add_library(dtm_test_products OBJECT ${DTM_TESTS_DIR}/support/products.cpp)
target_compile_options(dtm_test_products PRIVATE -O2)
target_compile_definitions(dtm_test_products INTERFACE DTM_SEPARATE_PRODUCTS)
target_link_libraries(dtm_test_products PUBLIC dtm_test_options)

function(dtm_test_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;COMPILE_OPTIONS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE dtm_test_runner dtm_test_products ${arg_LIBRARIES})
  target_compile_options(${name} PRIVATE ${arg_COMPILE_OPTIONS})
endfunction()

set(DTM_TEST_DEADLINE 20 CACHE STRING "seconds after which a wait in a test fails")
# UCX warns at the end of a job that left messages behind, which a failed case does.
set(environment UCX_LOG_LEVEL=error OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
  DTM_DEADLINE=${DTM_TEST_DEADLINE} DTM_CHECK_LEVEL=2)
if(DTM_SANITIZE)  # abort: the runner's handler then names rank and case
  list(APPEND environment UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1)
endif()
set(DTM_TEST_ENVIRONMENT "${environment}" CACHE INTERNAL "of every test program")

# What every test under mpiexec has: its processors, a limit of ctest, and just below it mpiexec's own, whose
# message is the better one.
function(dtm_limit_mpi_test test)
  cmake_parse_arguments(arg "" "RANKS;TIMEOUT" "LABELS;ENVIRONMENT" ${ARGN})
  if(DTM_SANITIZE)  # the emulator's fibers, and nine ranks on two cores, are several times slower with it
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  math(EXPR mpiexec_timeout "${arg_TIMEOUT} - ${arg_TIMEOUT} / 12 - 1")
  set_tests_properties(${test} PROPERTIES
    PROCESSORS ${arg_RANKS} TIMEOUT ${arg_TIMEOUT} LABELS "mpi;np${arg_RANKS};${arg_LABELS}"
    ENVIRONMENT "${DTM_TEST_ENVIRONMENT};MPIEXEC_TIMEOUT=${mpiexec_timeout};${arg_ENVIRONMENT}")
endfunction()

# A program of dtm_add_mpi_test on so many ranks, as the entry name.npN.
function(dtm_run_mpi_test program name ranks)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS;ENVIRONMENT;ARGUMENTS" ${ARGN})
  add_test(NAME ${name}.np${ranks}
    COMMAND bash ${DTM_TESTS_DIR}/cmake/run_mpi.sh
            "${MPIEXEC_EXECUTABLE}" "${MPIEXEC_NUMPROC_FLAG}" ${ranks} ${MPIEXEC_PREFLAGS}
            $<TARGET_FILE:${program}> ${MPIEXEC_POSTFLAGS} ${arg_ARGUMENTS})
  set_tests_properties(${name}.np${ranks} PROPERTIES SKIP_RETURN_CODE 77)
  dtm_limit_mpi_test(${name}.np${ranks} RANKS ${ranks} TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS} ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()

function(dtm_add_mpi_test)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT"
    "SOURCES;RANKS;LABELS;LIBRARIES;ARGUMENTS;ENVIRONMENT;COMPILE_OPTIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES OR NOT arg_RANKS)
    message(FATAL_ERROR "dtm_add_mpi_test needs NAME, SOURCES and RANKS; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  dtm_test_program(${arg_NAME} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES}
    COMPILE_OPTIONS ${arg_COMPILE_OPTIONS})
  foreach(ranks IN LISTS arg_RANKS)
    dtm_run_mpi_test(${arg_NAME} ${arg_NAME} ${ranks} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS}
      ENVIRONMENT ${arg_ENVIRONMENT} ARGUMENTS ${arg_ARGUMENTS})
  endforeach()
endfunction()

function(dtm_add_backend_test)
  cmake_parse_arguments(arg "" "NAME;BACKEND;TIMEOUT" "SOURCES;RANKS;LABELS;LIBRARIES;ENVIRONMENT;COMPILE_OPTIONS"
    ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_BACKEND)
    message(FATAL_ERROR "dtm_add_backend_test needs BACKEND; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(suffix _${arg_BACKEND})
  set(optimise -O1)  # for the emulator's sake
  if(arg_BACKEND STREQUAL "host")
    set(suffix "")
    set(optimise -O0)
  elseif(arg_BACKEND STREQUAL "cuda" AND DTM_TEST_ON_GPU)
    set(optimise -O0)
    list(APPEND arg_LIBRARIES dtm_on_gpu)
  elseif(arg_BACKEND STREQUAL "cuda")
    if(NOT TARGET dtm_gpu_stand_in)
      add_subdirectory(${DTM_TESTS_DIR}/gpu/stand_in gpu_stand_in)
    endif()
    if(NOT TARGET dtm_gpu_stand_in)  # its CMakeLists has said what is missing
      return()
    endif()
    list(APPEND arg_LIBRARIES dtm_gpu_stand_in)
    list(APPEND arg_ENVIRONMENT DTM_STAND_IN_DEVICES=9)
  endif()
  dtm_add_mpi_test(NAME ${arg_NAME}${suffix} SOURCES ${arg_SOURCES} RANKS ${arg_RANKS} TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS} ${arg_BACKEND} LIBRARIES ${arg_LIBRARIES} ENVIRONMENT ${arg_ENVIRONMENT}
    COMPILE_OPTIONS ${optimise} -DDTM_TEST_BACKEND=${arg_BACKEND} ${arg_COMPILE_OPTIONS})
endfunction()

function(dtm_add_test)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT"
    "SOURCES;LABELS;LIBRARIES;ARGUMENTS;ENVIRONMENT;COMPILE_OPTIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "dtm_add_test needs NAME and SOURCES; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  dtm_test_program(${arg_NAME} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES}
    COMPILE_OPTIONS ${arg_COMPILE_OPTIONS})
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGUMENTS})
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    LABELS "single;${arg_LABELS}" ENVIRONMENT "${DTM_TEST_ENVIRONMENT};${arg_ENVIRONMENT}")
endfunction()

# Include folders with all dependencies, for tests that call a compiler themselves.
foreach(component IN LISTS DTM_COMPONENTS ITEMS dtm)
  if(NOT TARGET dtm_includes_${component})
    add_library(dtm_includes_${component} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/nothing.cpp)
    target_link_libraries(dtm_includes_${component} PRIVATE dtm::${component})
    # Naming the compiler's own folder again would change the order that its headers rely on.
    set(folders $<TARGET_PROPERTY:dtm_includes_${component},INCLUDE_DIRECTORIES>)
    set(folders $<REMOVE_DUPLICATES:$<FILTER:${folders},EXCLUDE,^/usr/include$>>)
    set(DTM_INCLUDES_${component} "-I$<JOIN:${folders},;-I>")  # wants COMMAND_EXPAND_LISTS
  endif()
endforeach()

function(dtm_add_syntax_test kind_of_test file)
  cmake_parse_arguments(arg "" "" "LABELS;COMPILE_OPTIONS" ${ARGN})
  cmake_path(ABSOLUTE_PATH file)
  cmake_path(GET file STEM name)
  foreach(compiler IN LISTS DTM_SYNTAX_COMPILERS)
    string(REGEX MATCH "^[a-z]+" kind ${compiler})
    string(REPLACE "${kind}=" "" path ${compiler})
    if(kind_of_test STREQUAL "negative")
      set(command bash ${DTM_TESTS_DIR}/cmake/run_negative.sh ${kind} ${path} ${file})
    else()
      set(command ${path} -std=c++20 -fsyntax-only -Wall -Wextra ${file})
    endif()
    add_test(NAME ${kind_of_test}.${name}.${kind}
      COMMAND ${command} -I${DTM_TESTS_DIR} "${DTM_INCLUDES_dtm}" ${arg_COMPILE_OPTIONS}
      COMMAND_EXPAND_LISTS)
    set_tests_properties(${kind_of_test}.${name}.${kind} PROPERTIES TIMEOUT 600
      LABELS "${kind_of_test};${kind};${arg_LABELS}")
  endforeach()
endfunction()

function(dtm_add_negative_test file)
  dtm_add_syntax_test(negative ${file} ${ARGN})
endfunction()

function(dtm_add_static_test file)
  dtm_add_syntax_test(static ${file} ${ARGN})
endfunction()
