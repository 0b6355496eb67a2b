// Steps that reach beyond one device: the four collectives that pass `devices` leaves, the device's
// own ids, and host queues and channels.
#pragma once

#include "runtime/steps.h"

namespace hlojit {

/// all-gather, all-to-all, collective-permute, collective-broadcast as pass `devices` writes them:
/// whole row-major blocks, participants in device numbers.
StepFunction collective_step(const Instruction& collective);
/// replica-id, partition-id.
StepFunction device_id_step(const Instruction& id);
/// rng-get-and-update-state: a counter of 128 bits a run and device.
StepFunction random_state_step(const Instruction& state);
/// infeed, outfeed, send, recv and their halves.
StepFunction queue_step(const Instruction& transfer);

}  // namespace hlojit
