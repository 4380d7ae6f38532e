# SPDX-License-Identifier: Apache-2.0
"""Saves by shardwright.megatron to one folder of which one begins before another is published."""
import pytest

JOBS = "megatron_saves_at_once_jobs"


@pytest.mark.parametrize("switched_on", (False, True))
def test_the_last_of_several_async_saves_loads(ranks, tmp_path, switched_on):
    ranks(JOBS, "one_queue", 2, root=tmp_path, switched_on=switched_on)


def test_so_it_does_with_a_later_megatron(newer_ranks, tmp_path):
    newer_ranks(JOBS, "one_queue", 2, root=tmp_path, switched_on=False)


def test_files_of_saves_that_are_under_way_have_different_names(ranks, tmp_path):
    ranks(JOBS, "no_file_yet", 2, root=tmp_path)


@pytest.mark.parametrize("later_is_async", (False, True))
def test_what_began_later_is_not_replaced(ranks, tmp_path, later_is_async):
    ranks(JOBS, "outdone", 2, root=tmp_path, later_is_async=later_is_async)


@pytest.mark.parametrize("how, code", (("removed", "SW0101"), ("cut", "SW0104")))
def test_nothing_is_published_whose_files_are_not_there(ranks, tmp_path, how, code):
    ranks(JOBS, "spoilt", 2, root=tmp_path, how=how, code=code)


def test_files_of_saves_that_were_dropped_go(ranks, tmp_path):
    ranks(JOBS, "given_up", 2, root=tmp_path)


def test_files_of_other_jobs_stay(ranks, tmp_path):
    ranks(JOBS, "of_another_job", 2, root=tmp_path)


def test_saves_to_other_folders_are_no_concern(ranks, tmp_path):
    ranks(JOBS, "two_folders", 2, root=tmp_path)
