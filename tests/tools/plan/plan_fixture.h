#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli_fixture.h"

/// `plan`, and the proof of what it chooses.
class PlanCli : public Cli {
 protected:
  /// What `plan --json` prints; null if it fails.
  nlohmann::json plan(const std::string& arguments) const {
    const Outcome o = run("plan --json " + arguments);
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
    return o.code == 0 ? nlohmann::json::parse(o.out) : nlohmann::json();
  }
  /// Runs a command as it is printed, which must succeed.
  void expect_proven(const std::string& command) const {
    ASSERT_TRUE(command.starts_with("shardproof ")) << command;
    const Outcome proof = run(command.substr(std::string("shardproof ").size()));
    EXPECT_EQ(proof.code, 0) << command << "\n" << proof.out << proof.err;
  }
};
