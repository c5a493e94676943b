# Debian's cross compiler for aarch64. The libraries are unpacked in a folder, the sysroot:
# tools/cross makes it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(SHARDPROOF_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/sysroot
    CACHE PATH "Where the libraries for aarch64 are")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SHARDPROOF_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${SHARDPROOF_SYSROOT})
# Nothing of this machine's own: its headers and libraries are another processor's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# What the libraries need themselves; and FindHDF5 would ask this machine's h5cc.
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
       " -Wl,-rpath-link,${SHARDPROOF_SYSROOT}/usr/lib/aarch64-linux-gnu"
       " -Wl,-rpath-link,${SHARDPROOF_SYSROOT}/lib/aarch64-linux-gnu")
set(HDF5_C_COMPILER_EXECUTABLE ${SHARDPROOF_SYSROOT}/no-h5cc)
# Headers of this processor alone, as openssl/opensslconf.h: a compiler of this machine's own looks
# there by itself.
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${SHARDPROOF_SYSROOT}/usr/include/aarch64-linux-gnu)
