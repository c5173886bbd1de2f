# How everything is compiled: language, visibility, warnings, tools.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_EXE_LINKER_FLAGS_SANITIZE "")
set(CMAKE_SHARED_LINKER_FLAGS_SANITIZE "")
set(CMAKE_MODULE_LINKER_FLAGS_SANITIZE "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-sign-compare
                    -Wno-missing-field-initializers -fno-math-errno
                    -fno-trapping-math -ffp-contract=off)
# g++ 12 sees these where nothing is wrong, in inlined library code.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds
                      -Wno-stringop-overflow -Wno-stringop-overread)
endif()
add_compile_definitions($<$<CONFIG:Debug,Sanitize>:_GLIBCXX_ASSERTIONS>)
if(HR_SANITIZE)
  add_compile_options(-fsanitize=${HR_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HR_SANITIZE})
  if(HR_SANITIZE MATCHES thread)
    # Seeing the macro, protobuf's headers add members to map fields that the
    # packaged library, built without, does not have. libstdc++ is still told, and
    # our tests by the same name.
    add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()
if(HR_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HR_FUZZ wants clang: cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
find_program(HR_MOLD mold)
if(HR_MOLD)
  # Sections that rarely run stay together, away from those that often do, as
  # other linkers have it by default: small eager ops took 3-13% longer without.
  add_link_options(-fuse-ld=mold -Wl,-z,keep-text-section-prefix)
endif()
find_program(HR_CCACHE ccache)
if(HR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${HR_CCACHE})
  if(HR_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  endif()
endif()
