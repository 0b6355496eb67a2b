// NumPy's .npy files: versions 1.0-3.0 read in C or Fortran order, little-endian; 1.0 in C order written.
#pragma once

#include <string>

#include "hlojit/hlojit.h"

namespace hlojit::tools {

/// A file that could not be read, as an error of kind kInput; `code` as errno has it.
Error unreadable(const std::string& path, int code);

/// Reads a file that must hold `shape` (type and sizes), into shape's layout.
/// Throws Error(kInput) naming the file for anything else.
Buffer read_npy(const std::string& path, const Shape& shape);

/// Writes the elements in row-major order; the file appears whole or not at all. Throws Error(kFailed).
void write_npy(const std::string& path, const Buffer& buffer);

/// Writes a file by a temporary beside it and a rename. Throws Error(kFailed).
void write_file(const std::string& path, const std::string& bytes);

}  // namespace hlojit::tools
