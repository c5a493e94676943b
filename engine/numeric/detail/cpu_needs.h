#pragma once

namespace shardproof {

/// Where cpuid tells of an instruction set extension.
struct CpuFeature {
  enum Register : unsigned { eax, ebx, ecx, edx };
  /// What the operating system must save on a switch of tasks: bits of XCR0.
  enum State : unsigned { general = 0, ymm = 0x6, zmm = 0xe6 };

  const char* name;
  unsigned leaf;
  Register reg;
  unsigned bit;
  State state;
};

/// What the compiler may use in every file without asking; ends with a null name. In a file of its
/// own, compiled as all the others are: their predefined macros are what is asked for.
extern const CpuFeature kCpuNeeds[];

}  // namespace shardproof
