#!/bin/bash
set -ex
placement-manage db sync
