<?php \Shop\leaf(77);
