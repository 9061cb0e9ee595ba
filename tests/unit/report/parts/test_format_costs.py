"""What formats were measured to cost."""

from deft_horovod.profile import FormatCost, LinkCost
from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.format_costs import format_costs
from deft_horovod.report.parts.link_fits import link_fits
from tests.unit.support.example import profile
from tests.unit.support.reports import Page, predicted

COST = LinkCost(alpha_us=1_300.0, beta_us_per_byte=0.0013)
INT8 = FormatCost(format="int8", cost=COST, encode_us_per_byte=8e-5, decode_us_per_byte=5e-5)


def test_each_format_of_each_link_has_its_row():
    plain = FormatCost(format="f16", cost=COST)
    one = profile(links=("horovod", "second"), formats=(plain, INT8))
    rows = list(format_costs(one.links).iter("tr"))
    assert len(rows) == 1 + 4
    text = Page(document(link_fits(predicted(None, one)))).text
    for told in ("int8", "rounded by 0.66 %", "1.30", "769.2 MB/s", "12.5 GB/s", "20 GB/s"):
        assert told in text


def test_without_formats_there_is_no_table():
    assert format_costs(profile().links) is None
