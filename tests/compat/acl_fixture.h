// SPDX-License-Identifier: Apache-2.0
// Tests of the acl interface, on every back-end: the fixture chooses it and opens device 0.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "acl/acl.h"
#include "millstream_launch.h"

namespace millstream {

inline std::string backend_of(const testing::TestParamInfo<const char*>& tested) { return tested.param; }

class Acl : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("MILLSTREAM_DEVICE", GetParam(), 1);
    unsetenv("MILLSTREAM_PROFILE");
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS) << aclGetRecentErrMsg();
  }
  void TearDown() override {
    while (aclrtResetDeviceForce(0) == ACL_SUCCESS) {
    }
  }
  static void reopen(const char* profile) {
    ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
    setenv("MILLSTREAM_PROFILE", profile, 1);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS) << aclGetRecentErrMsg();
  }
  static aclrtStream stream() {
    aclrtStream s = nullptr;
    EXPECT_EQ(aclrtCreateStream(&s), ACL_SUCCESS) << aclGetRecentErrMsg();
    return s;
  }
  static aclrtEvent latch() {
    aclrtEvent e = nullptr;
    EXPECT_EQ(aclrtCreateEvent(&e), ACL_SUCCESS) << aclGetRecentErrMsg();
    return e;
  }
  static aclrtEvent snapshot(std::uint32_t flags = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE) {
    aclrtEvent e = nullptr;
    EXPECT_EQ(aclrtCreateEventExWithFlag(&e, flags), ACL_SUCCESS) << aclGetRecentErrMsg();
    return e;
  }
  static bool said(const char* part) { return std::string(aclGetRecentErrMsg()).find(part) != std::string::npos; }
};

#define OK(call) EXPECT_EQ(call, ACL_SUCCESS) << aclGetRecentErrMsg()
#define CODE(wanted, call) EXPECT_EQ(call, wanted) << aclGetRecentErrMsg()

}  // namespace millstream
