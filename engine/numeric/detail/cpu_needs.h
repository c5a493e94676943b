#pragma once

namespace shardproof {

/// The cpuid bit of an instruction set extension.
struct CpuFeature {
  enum Register : unsigned { eax, ebx, ecx, edx };
  /// State that the operating system must save on a task switch: bits of XCR0.
  enum State : unsigned { general = 0, ymm = 0x6, zmm = 0xe6 };

  const char* name;
  unsigned leaf;
  Register reg;
  unsigned bit;
  State state;
};

/// The extensions that the compiler may use in every file without asking; ends with a null name. In
/// its own file, compiled with the flags of all the others, whose predefined macros it reads.
extern const CpuFeature kCpuNeeds[];

}  // namespace shardproof
