#pragma once

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include "golden/cases/any_case.h"
