// See dump.h.
#include "runtime/dump.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace hlojit {
namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw Error(ErrorKind::kFailed, fmt::format("cannot write {}", path));
}

void make_folder(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!code && !std::filesystem::is_directory(path, code)) code = std::make_error_code(std::errc::not_a_directory);
  if (code) throw Error(ErrorKind::kFailed, fmt::format("cannot make the folder {}: {}", path, code.message()));
}

}  // namespace

std::function<void(const std::string& pass, const std::string& hlo)> dump_passes(const std::string& folder) {
  make_folder(folder);
  return [folder, n = 0](const std::string& pass, const std::string& hlo) mutable {
    write(fmt::format("{}/{:02}_{}.hlo", folder, n++, pass), hlo);
  };
}

void dump_code(const Lowered& planned, const Options& options, const codegen::Target& target) {
  if (options.dump_dir.empty()) return;
  write(options.dump_dir + "/buffers.txt", planned.buffers.report());
  codegen::IrModule ir = emit_ir(planned, options, target);
  write(options.dump_dir + "/module.ll", ir.to_string());
  const codegen::Effort effort = options.effort == 0 ? codegen::Effort::kQuick : codegen::Effort::kFull;
  write(options.dump_dir + "/module.s", compile_assembly(*ir.module, target, effort));
}

}  // namespace hlojit
