# Units that nvcc compiles, and what programs with them link. Helpers:
#
#   dtm_nvcc_object(object source.cu [WATCHED])
#     The rule that makes an object. WATCHED: warnings fail, and what ptxas says of the kernels is kept in
#     object.log; for a compiler that the repository's tests know.
#
#   dtm_add_kernels(name source.cu)
#     An object as a static library, for any program to link.
#
#   dtm_find_cuda_libraries()
#     Sets DTM_CUDA_LIBRARIES to what links the CUDA runtime, cuBLAS and NCCL, or to nothing where one of
#     them is missing. Every folder calls it for itself, since its targets are the folder's own.
#
# Where nvcc is not found DTM_NVCC is false, and nothing of this may be called.

set(DTM_CUDA_ARCHITECTURES 90 CACHE STRING
  "GPUs that nvcc compiles for, such as 80;90, or all: 80, 90, and newer ones that nvcc knows")

find_program(DTM_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda
  PATH_SUFFIXES bin DOC "nvcc of the GPU tests")

# Numbers of the architectures, such as 80;90.
function(dtm_cuda_architectures result)
  set(wanted ${DTM_CUDA_ARCHITECTURES})
  if(wanted STREQUAL "all")
    execute_process(COMMAND ${DTM_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
    set(wanted 80 90)
    foreach(newer IN ITEMS 100 120)
      if(known MATCHES "sm_${newer}([^0-9]|$)")
        list(APPEND wanted ${newer})
      endif()
    endforeach()
  endif()
  set(${result} ${wanted} PARENT_SCOPE)
endfunction()

function(dtm_nvcc_object object source)
  cmake_parse_arguments(arg "WATCHED" "" "" ${ARGN})
  cmake_path(ABSOLUTE_PATH source)
  cmake_path(GET source FILENAME name)
  set(command ${DTM_NVCC} -std=c++20 -O2 -I${PROJECT_SOURCE_DIR}/include)
  get_target_property(folders MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  foreach(folder IN LISTS folders Boost_INCLUDE_DIRS)
    if(folder AND NOT folder STREQUAL "/usr/include")
      list(APPEND command -isystem ${folder})
    endif()
  endforeach()
  dtm_cuda_architectures(architectures)
  foreach(architecture IN LISTS architectures)
    list(APPEND command -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(APPEND command -c ${source})
  set(script "")
  if(arg_WATCHED)
    set(script ${PROJECT_SOURCE_DIR}/tests/gpu/compile.sh)
    list(PREPEND command bash ${script} ${object})
  else()
    list(APPEND command -MD -MF ${object}.d -o ${object})
  endif()
  add_custom_command(OUTPUT ${object} COMMAND ${command} DEPENDS ${source} ${script}
    DEPFILE ${object}.d COMMENT "nvcc ${name}" VERBATIM)
endfunction()

function(dtm_add_kernels name source)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  dtm_nvcc_object(${object} ${source} ${ARGN})
  dtm_library_of_object(${name} ${object})
endfunction()

function(dtm_library_of_object name object)
  add_library(${name} STATIC ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

macro(dtm_find_cuda_libraries)
  set(DTM_CUDA_LIBRARIES "")
  if(TARGET dtm_cuda)
    set(DTM_CUDA_LIBRARIES dtm_cuda)
  else()
    find_package(CUDAToolkit QUIET)
    find_library(DTM_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} DOC "NCCL")
    find_path(DTM_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} DOC "headers of NCCL")
    if(TARGET CUDA::cudart AND TARGET CUDA::cublas AND DTM_NCCL_LIBRARY AND DTM_NCCL_INCLUDE)
      if(NOT TARGET dtm_found_nccl)
        add_library(dtm_found_nccl INTERFACE IMPORTED)
        target_include_directories(dtm_found_nccl INTERFACE ${DTM_NCCL_INCLUDE})
        target_link_libraries(dtm_found_nccl INTERFACE ${DTM_NCCL_LIBRARY})
      endif()
      set(DTM_CUDA_LIBRARIES dtm::mpi CUDA::cudart CUDA::cublas dtm_found_nccl)
    endif()
  endif()
endmacro()
