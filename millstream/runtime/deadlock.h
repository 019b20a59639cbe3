// SPDX-License-Identifier: Apache-2.0
// Streams of an idle device that wait for each other, or for what nobody records.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "millstream/runtime/objects.h"

namespace millstream::rt {

struct Stuck {
  /// Certain: a cycle; nothing the device has queued can end it. Else: waits that nobody on the device records for,
  /// which a host still might.
  bool certain = false;
  struct Wait {
    std::shared_ptr<Lane> lane;
    std::uint64_t park = 0;
    Error error;             ///< what its wait is to fail with: the stream, its last task, what it waits for, the cycle
  };
  std::vector<Wait> waits;
  std::uint64_t fingerprint = 0;  ///< equal while the same lanes are in the same parks
};

/// Looks at every parked lane of a quiescent device: cycles, else, while a host thread is blocked and no wait has a
/// deadline, waits without a recorder that no other device moves towards. O(queued tasks).
std::optional<Stuck> find_stuck(DeviceState& device);

/// What the calling thread does if it is in a kernel of a device of virtual time: it waits there, so that the device stands
/// still meanwhile, or goes on at once.
enum class OwnKernel : std::uint8_t { waits, goes_on };

/// Other devices that are moving towards what lanes of this one wait for, those behind them too, each once. O(lanes), and
/// nothing while no lane waits for another device.
std::vector<std::shared_ptr<DeviceState>> moving_towards(DeviceState& device, OwnKernel own);

/// Whether one is moving towards what this lane waits for, or towards what would record `awaited`, through lanes of this device
/// and of others. O(queued tasks), and false at once while no lane waits for another device.
bool moves_towards(DeviceState& device, Lane& waits, OwnKernel own);
bool moves_towards(DeviceState& device, const Awaited& awaited, OwnKernel own);

/// Lanes that have tasks and are not parked. One that another device has let go is among them before its machine hears of it.
std::size_t moving_lanes(DeviceState& device);

/// The device stands still and no queued task of it records `awaited`; that it has not been recorded meanwhile the caller
/// asks behind this.
bool nobody_records(DeviceState& device, const Awaited& awaited);

/// Fails the waits.
void report(const Stuck& stuck);

/// "stream 2 of context 0 at task 5 (wait) waits for event 3, after task 4 (kernel); ..." for the chain that starts
/// at this stream, as sync time-outs show it. Empty: it does not wait.
std::vector<std::string> blocking_chain(DeviceState& device, StreamState& stream);

}  // namespace millstream::rt
