// Config strings against those that gin-config prints; tests/golden/gin/README.md says how.
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "gin/config.h"
#include "gin/test_registry.h"

namespace t5x::gin {
namespace {

const std::string kDir = std::string(T5X_SOURCE_DIR) + "/tests/golden/gin/";

void read_run(Config& config) {
  config.set_main_module("t5x.train");
  config.add_search_path(kDir);
  config.parse_file("top.gin");
  for (const char* binding :
       {"BATCH_SIZE = 16", "train/utils.DatasetConfig.seed = 3", "train_script.train.eval_period = 5",
        "MODEL/network.T5Config.dtype = 'float32'"}) {
    config.bind(binding);
  }
  config.finalize();
}

TEST(Golden, ConfigStringWithDynamicRegistration) {
  TestRegistry test;
  Config config(test.registry);
  read_run(config);
  EXPECT_EQ(config.config_str(), read_file(kDir + "run.config.txt"));
}

TEST(Golden, OperativeConfigString) {
  TestRegistry test;
  Config config(test.registry);
  read_run(config);
  config.call("train");
  EXPECT_EQ(config.operative_config_str(), read_file(kDir + "run.operative.txt"));
}

TEST(Golden, Markdown) {
  EXPECT_EQ(Config::markdown(read_file(kDir + "run.operative.txt")), read_file(kDir + "run.markdown.txt"));
}

// lib.alpha.f and the others of literals.gin.
void add_literal_functions(Registry& registry) {
  for (const char* name : {"lib.alpha.f", "lib.beta.f", "lib.gamma.g"}) {
    Configurable configurable;
    configurable.name = name;
    configurable.any_params = true;
    configurable.call = [](const Args&) { return Value(); };
    registry.add(std::move(configurable));
  }
}

TEST(Golden, ConfigStringWithEveryLiteral) {
  Registry registry;
  add_literal_functions(registry);
  Config config(registry);
  config.parse_file(kDir + "literals.gin");
  config.finalize();
  EXPECT_EQ(config.config_str(), read_file(kDir + "literals.config.txt"));
}

TEST(RoundTrip, ConfigStringParsesToItself) {
  Registry registry;
  add_literal_functions(registry);
  Config first(registry);
  first.parse_file(kDir + "literals.gin");
  Config second(registry);
  second.parse_string(first.config_str());
  second.finalize();
  EXPECT_EQ(second.config_str(), first.config_str());
}

TEST(RoundTrip, LiteralsKeepTheirValues) {
  Registry registry;
  add_literal_functions(registry);
  Config first(registry);
  first.parse_file(kDir + "literals.gin");
  Config second(registry);
  second.parse_string(first.config_str());
  for (const char* key :
       {"lib.alpha.f.string3", "lib.alpha.f.string6", "lib.alpha.f.bytes1", "lib.alpha.f.nested",
        "lib.alpha.f.long_string", "lib.alpha.f.float6", "scoped/MACRO"}) {
    ASSERT_NE(first.query(key), nullptr) << key;
    ASSERT_NE(second.query(key), nullptr) << key;
    EXPECT_EQ(*first.query(key), *second.query(key)) << key;
  }
}

TEST(RoundTrip, DynamicConfigStringParsesToItself) {
  TestRegistry test;
  Config first(test.registry);
  read_run(first);
  Config second(test.registry);
  second.set_main_module("t5x.train");
  second.parse_string(first.config_str());
  second.finalize();
  EXPECT_EQ(second.config_str(), first.config_str());
}

TEST(RoundTrip, DynamicRegistrationStaysFirst) {
  TestRegistry test;
  Config first(test.registry);
  first.parse_string("from __gin__ import dynamic_registration\nimport Able");
  Config second(test.registry);
  second.parse_string(first.config_str());
  EXPECT_EQ(second.config_str(), first.config_str());
}

TEST(RoundTrip, OperativeStringRunsTheSame) {
  TestRegistry test;
  Config first(test.registry);
  read_run(first);
  first.call("train");
  Config second(test.registry);
  second.set_main_module("t5x.train");
  second.parse_string(first.operative_config_str());
  second.finalize();
  second.call("t5x.train.train");
  EXPECT_EQ(second.operative_config_str(), first.operative_config_str());
}

}  // namespace
}  // namespace t5x::gin
