# Where the build finds cuBLAS, cuDNN, its frontend and NCCL: beside the CUDA toolkit, else in the Python packages that the PATH's
# python3 sees. Run as: cmake -DREPOSITORY=... -DWORK=... -P find_packages_cases.cmake
cmake_minimum_required(VERSION 3.24)
list(APPEND CMAKE_MODULE_PATH ${REPOSITORY}/cmake)
file(REMOVE_RECURSE ${WORK})

# imitate(folder header library [version-file lines]): what a package has that is looked for
function(imitate folder header library)
  file(WRITE ${folder}/include/${header} "")
  file(WRITE ${folder}/lib/${library} "")
endfunction()
function(imitate_cublas folder minor)
  imitate(${folder} cublas_v2.h libcublas.so.13)
  file(WRITE ${folder}/include/cublas_api.h
    "#define CUBLAS_VER_MAJOR 13\n#define CUBLAS_VER_MINOR ${minor}\n#define CUBLAS_VER_PATCH 0\n")
endfunction()
imitate_cublas(${WORK}/site/nvidia/cu13 4)
imitate(${WORK}/site/nvidia/nccl nccl.h libnccl.so.2)
file(WRITE ${WORK}/site/nvidia/nccl/include/nccl.h "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n")
imitate(${WORK}/site/nvidia/cudnn cudnn.h libcudnn.so.9)
file(WRITE ${WORK}/site/nvidia/cudnn/include/cudnn_version.h
  "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 19\n#define CUDNN_PATCHLEVEL 0\n")
# A package of headers alone, at the top of where packages are.
file(WRITE ${WORK}/site/include/cudnn_frontend.h "")
file(WRITE ${WORK}/site/include/cudnn_frontend_version.h
  "#define CUDNN_FRONTEND_MAJOR_VERSION 1\n#define CUDNN_FRONTEND_MINOR_VERSION 32\n"
  "#define CUDNN_FRONTEND_PATCH_VERSION 0\n#define CUDNN_FRONTEND_VERSION 13200\n")

function(expect_equal what got expected)
  if(NOT got STREQUAL expected)
    message(SEND_ERROR "${what} is '${got}', expected '${expected}'")
  endif()
endfunction()
# expect_headers(package version folder): found there
function(expect_headers package version folder)
  unset(${package}_INCLUDE_DIR CACHE)
  find_package(${package} QUIET)
  expect_equal("${package}_VERSION" "${${package}_VERSION}" ${version})
  expect_equal("${package}_INCLUDE_DIR" "${${package}_INCLUDE_DIR}" ${folder}/include)
endfunction()
# expect(package version folder): the same with its library
function(expect package version folder)
  unset(${package}_LIBRARY CACHE)
  expect_headers(${package} ${version} ${folder})
  string(REGEX REPLACE "/[^/]*$" "" library_folder "${${package}_LIBRARY}")
  expect_equal("the folder of ${package}_LIBRARY" "${library_folder}" ${folder}/lib)
endfunction()

# The toolkit has none of them.
set(CUDAToolkit_INCLUDE_DIRS ${WORK}/toolkit/include)
set(CUDAToolkit_LIBRARY_DIR ${WORK}/toolkit/lib)
set(ENV{PYTHONPATH} ${WORK}/site)
expect(CuBLAS 13.4.0 ${WORK}/site/nvidia/cu13)
expect(NCCL 2.28.9 ${WORK}/site/nvidia/nccl)
expect(CuDNN 9.19.0 ${WORK}/site/nvidia/cudnn)
expect_headers(CuDNNFrontend 1.32.0 ${WORK}/site)
find_package(CuDNNFrontend 1.33 QUIET)
if(CuDNNFrontend_FOUND)
  message(SEND_ERROR "a cudnn-frontend that is too old is taken")
endif()
# The toolkit's own comes first.
imitate_cublas(${WORK}/toolkit 2)
expect(CuBLAS 13.2.0 ${WORK}/toolkit)
file(REMOVE_RECURSE ${WORK}/toolkit)
# The packages of a python3 that comes first on the PATH, as that of an activated environment does.
unset(ENV{PYTHONPATH})
file(WRITE ${WORK}/bin/python3 "#!/bin/sh\nPYTHONPATH=${WORK}/site exec ${PYTHON} \"$@\"\n")
file(CHMOD ${WORK}/bin/python3 PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(ENV{PATH} "${WORK}/bin:$ENV{PATH}")
expect(NCCL 2.28.9 ${WORK}/site/nvidia/nccl)
