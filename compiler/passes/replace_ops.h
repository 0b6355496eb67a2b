// Ops that are spelled out as others: the walk that `expand` and `devices` share.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/pipeline.h"

namespace hlojit {

/// Offers every instruction of `c` to `make`, which returns what stands for it, appended to `c` or there before, or
/// nullptr if it stays. What is appended stands where the op stood in the text and waits for what it waited for;
/// who waited for the op waits for what stands for it. Returns whether anything changed; `pass` explains each
/// replacement.
bool replace_ops(Computation& c, std::string_view pass, const PipelineOptions& options,
                 const std::function<Instruction*(const Instruction&)>& make);

/// Who waits for an instruction that is replaced waits for all that stand for it.
using StandIns = std::unordered_map<const Instruction*, std::vector<Instruction*>>;
void redirect_waits(Computation& c, const StandIns& instead);

/// `i` is about to be replaced by what was there before and waits for nobody: its readers wait, and who waited for it.
void hand_on_waits(const Instruction& i, StandIns& instead);
/// The same where `i` is removed right afterwards, which looks after those who waited for it.
void hand_on_waits(const Instruction& i);

/// Ends such a walk: removes `dead`, reads through tuples that have become explicit, and puts operands
/// before their users. Returns whether there was anything to remove.
bool remove_replaced(Computation& c, std::span<Instruction* const> dead);

}  // namespace hlojit
