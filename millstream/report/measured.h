// SPDX-License-Identifier: Apache-2.0
// A profile's own picture: its streams, its times.
#pragma once

#include <optional>
#include <vector>

#include "millstream/profile/join.h"
#include "millstream/report/report_data.h"

namespace millstream {

/// The records that belong to nodes, each on the profile's stream; of an operator that ran several times the last run, of
/// several devices the one with the lowest number. The plan's pairs are its arrows. None where no record has a start.
std::optional<ReportView> view_of_records(const ReportInput& input, const ReportPlan& plan, const std::vector<ProfileRecord>& records,
                                          const Joined& joined);

}  // namespace millstream
